import React from 'react';
import { createRoot } from 'react-dom/client';
import { createTheme, FieldType, getDisplayProcessor, dateTime, ThemeContext } from '@grafana/data';
import { TimeSeries, BigValue, PanelChrome, Table, GlobalStyles } from '@grafana/ui';
import dashboard from '../dashboard.json';
import recorded from './series.json';

const theme = createTheme({ colors: { mode: 'dark' } });
const unitWidth = 1600 / 24, unitHeight = 38;
const legendOf = (text, labels) => text ? text.replace(/{{\s*(\w+)\s*}}/g, (_, n) => labels[n] ?? '') : '';
const everything = Object.values(recorded).flat().flatMap(s => s.Values ?? []).map(v => v[0]);
const lived = recorded['max(leader_election_master_status)'][0].Values;
const from = Math.min(...everything) * 1000, to = lived.at(-1)[0] * 1000; // what follows is the end of the test
const timeRange = { from: dateTime(from), to: dateTime(to), raw: { from: dateTime(from), to: dateTime(to) } };

function config(panel, refId) {
  const c = structuredClone(panel.fieldConfig.defaults);
  for (const o of panel.fieldConfig.overrides) {
    if (o.matcher.id === 'byFrameRefID' && o.matcher.options === refId) {
      for (const p of o.properties) {
        if (p.id.startsWith('custom.')) { c.custom[p.id.slice(7)] = p.value; } else { c[p.id] = p.value; }
      }
    }
  }
  if (c.thresholds) { c.thresholds.steps = c.thresholds.steps.map(s => ({ ...s, value: s.value ?? -Infinity })); }
  return c;
}

function frames(panel) {
  let n = 0;
  return panel.targets.flatMap(t => (recorded[t.expr] ?? []).filter(s => s.Values?.length).map(s => {
    // Without samples for a while, the line is not drawn, as in Grafana with spanNulls off.
    const known = new Map(s.Values.map(v => [Math.round(v[0]), v[1]]));
    const times = [], values = [];
    for (let at = Math.round(from / 1000); at <= to / 1000; at++) { times.push(at * 1000); values.push(known.get(at) ?? null); }
    const name = legendOf(t.legendFormat, s.Metric) || ' ';
    const c = config(panel, t.refId);
    const value = { name: 'Value', type: FieldType.number, values, labels: s.Metric, state: { seriesIndex: n++ },
      config: { ...c, displayNameFromDS: name, custom: { axisPlacement: 'auto', axisColorMode: 'text', scaleDistribution: { type: 'linear' }, hideFrom: { viz: false, legend: false, tooltip: false }, lineStyle: { fill: 'solid' }, pointSize: 5, gradientMode: 'none', thresholdsStyle: { mode: 'off' }, barAlignment: 0, ...c.custom } } };
    value.display = getDisplayProcessor({ field: value, theme });
    const time = { name: 'Time', type: FieldType.time, values: times, config: {} };
    time.display = getDisplayProcessor({ field: time, theme, timeZone: 'utc' });
    return { refId: t.refId, name, fields: [time, value], length: times.length };
  }));
}

function Panel({ panel, width, height }) {
  const data = frames(panel);
  if (panel.type === 'stat') {
    const c = config(panel, 'A');
    const field = { name: 'Value', type: FieldType.number, config: c, values: [] };
    const last = data.length ? data[0].fields[1].values.filter(v => v !== null).at(-1) : null;
    // An instant query has nothing where a series has ended.
    const value = getDisplayProcessor({ field, theme })(data.length && data[0].fields[1].values.at(-1) !== null ? last : null);
    return <BigValue value={value} width={width} height={height} theme={theme} colorMode={panel.options.colorMode} graphMode="none" textMode="value" justifyMode="auto" />;
  }
  if (panel.type === 'table') {
    const organize = panel.transformations[0].options;
    const rows = (recorded[panel.targets[0].expr] ?? []).filter(s => Math.round(s.Values.at(-1)[0]) >= Math.round(to / 1000) - 1).map(s => s.Metric);
    const names = [...new Set(rows.flatMap(Object.keys))].filter(n => !organize.excludeByName[n]).sort((a, b) => organize.indexByName[a] - organize.indexByName[b]);
    const fields = names.map(n => {
      const f = { name: organize.renameByName[n] ?? n, type: FieldType.string, values: rows.map(r => r[n] ?? ''), config: { custom: { align: 'left' } }, state: {} };
      f.display = getDisplayProcessor({ field: f, theme });
      return f;
    });
    return <Table data={{ fields, length: rows.length }} width={width} height={height} />;
  }
  return <TimeSeries frames={data} structureRev={1} width={width} height={height} timeRange={timeRange} timeZone="utc" theme={theme}
    legend={panel.options.legend} options={{ legend: panel.options.legend, tooltip: panel.options.tooltip }} >{() => null}</TimeSeries>;
}

function Dashboard() {
  return <div style={{ position: 'relative', width: 1600, background: theme.colors.background.canvas }}>
    {dashboard.panels.map(p => {
      const { x, y, w, h } = p.gridPos;
      const box = { position: 'absolute', left: x * unitWidth + 4, top: y * unitHeight + 4, width: w * unitWidth - 8, height: h * unitHeight - 8 };
      if (p.type === 'row') { return <div key={p.id} style={{ ...box, color: theme.colors.text.primary, fontSize: 16, fontWeight: 500, paddingTop: 6 }}>⌄ {p.title}</div>; }
      return <div key={p.id} style={box}>
        <PanelChrome title={p.title} width={box.width} height={box.height} padding={p.type === 'stat' ? 'none' : 'md'}>
          {(width, height) => <Panel panel={p} width={width} height={height} />}
        </PanelChrome>
      </div>;
    })}
  </div>;
}

document.body.style.background = theme.colors.background.canvas;
document.body.style.margin = 0;
createRoot(document.getElementById('root')).render(<ThemeContext.Provider value={theme}><GlobalStyles /><Dashboard /></ThemeContext.Provider>);
