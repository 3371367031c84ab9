// SPDX-License-Identifier: Apache-2.0

// Builds the page into ../built, and writes which sources it was built of: a test
// compares that with the sources there are.
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const modules = process.argv[2]
if (!modules) throw new Error('want the folder node_modules: run make ui')
const { build } = createRequire(`${modules}/`)('esbuild')

const out = '../built'
rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
await build({
  entryPoints: { app: 'src/main.jsx', style: 'src/style.css' },
  outdir: out, bundle: true, minify: true, format: 'esm', target: 'es2022', legalComments: 'eof',
  jsx: 'automatic', jsxImportSource: 'preact', nodePaths: [modules],
})
cpSync('src/index.html', `${out}/index.html`)
cpSync('src/icon.svg', `${out}/icon.svg`)
cpSync(`${modules}/preact/LICENSE`, `${out}/LICENSE.preact.txt`)

const digest = (dir, names) => {
  const hash = createHash('sha256')
  for (const name of names) hash.update(`${name}\n`).update(readFileSync(`${dir}/${name}`)).update('\n')
  return hash.digest('hex')
}
const sources = ['build.mjs', 'package-lock.json', 'package.json', ...readdirSync('src').sort().map((name) => `src/${name}`)]
writeFileSync(`${out}/digests.txt`, `sources ${digest('.', sources)}\nbuilt ${digest(out, readdirSync(out).sort())}\n`)
