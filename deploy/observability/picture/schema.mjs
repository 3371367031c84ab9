// SPDX-License-Identifier: Apache-2.0

// Writes the dashboard as TypeScript with the types of Grafana's schema, which tsc
// then holds it to. Types of Grafana's say that all fields are there; here each may be left out.
import { readFileSync, writeFileSync } from 'node:fs';

const dashboard = JSON.parse(readFileSync('../dashboard.json', 'utf8'));
const raw = '@grafana/schema/dist/esm/raw/';
const lines = [
  `import { Dashboard, Panel, RowPanel } from '${raw}dashboard/x/dashboard_types.gen';`,
  `import * as timeseries from '${raw}composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';`,
  `import * as stat from '${raw}composable/stat/panelcfg/x/StatPanelCfg_types.gen';`,
  `import * as table from '${raw}composable/table/panelcfg/x/TablePanelCfg_types.gen';`,
  'type Some<T> = T extends (infer U)[] ? Some<U>[] : T extends object ? { [K in keyof T]?: Some<T[K]> } : T extends string ? T | `${T}` : T;',
];
const value = (name, type, v) => lines.push(`export const ${name}: Some<${type}> = ${JSON.stringify(v)};`);
const { panels, ...rest } = dashboard;
value('dashboard', "Omit<Dashboard, 'panels'>", rest);
for (const p of panels) {
  if (p.type === 'row') {
    value(`row${p.id}`, 'RowPanel', p);
    continue;
  }
  const { options, targets, ...panel } = p;
  value(`panel${p.id}`, 'Panel', panel);
  value(`options${p.id}`, `${p.type}.Options`, options);
  const custom = p.fieldConfig.defaults.custom;
  if (custom) {
    value(`custom${p.id}`, `${p.type}.FieldConfig`, custom);
  }
}
writeFileSync('out.ts', lines.join('\n') + '\n');
