/**
 * `npm run mutate [-- source]`: breaks each translator in one place at a time and runs its tests. A mutant that
 * no test notices shows a mapping nobody checks. At least 90 % must be caught.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { ROOT } from './run-command.ts';

const REQUIRED = 0.9;
/** The one source to try, if not all. */
const [, , ONLY] = process.argv;
const PACKAGE = join(ROOT, 'packages/sabir');
// Beside the package, so that paths out of it still lead where they did.
const COPY = join(ROOT, 'packages/.mutants');

type Mutant = { line: number; what: string; start: number; end: number; text: string };

/** What can be broken: entries of the mapping table, calls, conditions, and words. */
function mutantsOf(source: string): Mutant[] {
  const file = ts.createSourceFile('translate.ts', source, ts.ScriptTarget.Latest, true);
  const mutants: Mutant[] = [];
  const add = (node: ts.Node, what: string, text: string) => {
    const start = node.getStart(file);
    const line = file.getLineAndCharacterOfPosition(start).line + 1;
    mutants.push({ line, what, start, end: node.end, text });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isInterfaceDeclaration(node) || ts.isImportDeclaration(node)) {
      return;
    }
    if (ts.isPropertyAssignment(node) && ts.isArrayLiteralExpression(node.initializer)) {
      const [check, apply] = node.initializer.elements;
      const name = node.name.getText(file);
      if (check && apply) add(node.initializer, `${name} does nothing`, `[${check.getText(file)}]`);
      if (check) add(check, `${name} is never sound`, '(() => false)');
    }
    if (ts.isExpressionStatement(node) && ts.isCallExpression(node.expression)) {
      add(node, `without ${node.getText(file).slice(0, 50)}`, ';');
    }
    if (ts.isIfStatement(node)) {
      add(node.expression, `always: ${node.expression.getText(file).slice(0, 50)}`, 'true');
      add(node.expression, `never: ${node.expression.getText(file).slice(0, 50)}`, 'false');
    }
    if (ts.isStringLiteral(node) && ts.isCallExpression(node.parent)) {
      add(node, `another word for ${node.getText(file)}`, `'mutated'`);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return mutants;
}

function isCaught(test: string): boolean {
  const { status } = spawnSync(
    'vitest',
    ['run', '-r', COPY, '--bail=1', '--typecheck.enabled=false', '--reporter=dot', test],
    { cwd: ROOT, stdio: 'ignore', timeout: 120_000, env: { ...process.env, CI: 'true' } },
  );
  return status !== 0;
}

rmSync(COPY, { recursive: true, force: true });
mkdirSync(COPY);
for (const name of ['src', 'test', 'vitest.config.ts', 'tsconfig.json']) {
  cpSync(join(PACKAGE, name), join(COPY, name), { recursive: true });
}

let caught = 0;
const survivors: string[] = [];
try {
  const sources = readdirSync(join(COPY, 'src/sources'));
  for (const source of sources.filter((name) => ONLY === undefined || name === ONLY)) {
    const folder = `src/sources/${source}`;
    const path = join(COPY, folder, 'translate.ts');
    const original = readFileSync(path, 'utf8');
    const test = `${folder}/translate.test.ts`;
    if (isCaught(test)) throw new Error(`${test} fails without any mutant`);
    for (const { line, what, start, end, text } of mutantsOf(original)) {
      writeFileSync(path, original.slice(0, start) + text + original.slice(end));
      if (isCaught(test)) caught++;
      else survivors.push(`${source}:${line} ${what}`);
      process.stdout.write(`\r${caught} caught, ${survivors.length} survived`);
    }
    writeFileSync(path, original);
  }
} finally {
  rmSync(COPY, { recursive: true, force: true });
}

const share = caught / (caught + survivors.length);
console.log(`\n${survivors.map((survivor) => `  survived: ${survivor}`).join('\n')}`);
console.log(`${Math.round(share * 1000) / 10} % of ${caught + survivors.length} mutants caught`);
process.exit(share >= REQUIRED ? 0 : 1);
