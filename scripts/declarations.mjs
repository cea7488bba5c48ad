// Of the declarations that TypeScript has made of src/, those that no entry of the library leads to serve nobody.
import { rmSync, writeFileSync } from 'node:fs';
import ts from 'typescript';

/** Takes them out. `entries`: the entries' .d.ts files; `all`: every one of the package. Both are absolute paths. */
export function pruneDeclarations(entries, all) {
  const program = ts.createProgram(entries, { module: ts.ModuleKind.NodeNext, skipLibCheck: true, types: ['node'] });
  const checker = program.getTypeChecker();
  const own = new Set(all);
  const needed = new Set();
  const waiting = [];
  /** What a name leads to, from one file to the next. */
  const follow = (symbol) => {
    for (let at = symbol; at !== undefined; ) {
      for (const declaration of at.declarations ?? []) {
        if (!own.has(declaration.getSourceFile().fileName)) continue;
        const part = partOf(declaration);
        if (needed.has(part)) continue;
        needed.add(part);
        waiting.push(part);
      }
      at = at.flags & ts.SymbolFlags.Alias ? checker.getImmediateAliasedSymbol(at) : undefined;
    }
  };
  for (const entry of entries)
    checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(entry))).forEach(follow);
  const visit = (node) => {
    if (ts.isIdentifier(node)) follow(checker.getSymbolAtLocation(node));
    ts.forEachChild(node, visit);
  };
  for (let part = waiting.pop(); part !== undefined; part = waiting.pop()) if (!isSpecifier(part)) visit(part);
  const hasNeeded = (source) => [...needed].some((part) => part.getSourceFile() === source);
  for (const path of all) {
    const source = program.getSourceFile(path);
    const text = source && hasNeeded(source) ? source.statements.map((one) => textOf(one, needed)).join('') : '';
    if (text === '') rmSync(path);
    else writeFileSync(path, `${text.trim()}\n`);
  }
}

const isSpecifier = (node) => ts.isImportSpecifier(node) || ts.isExportSpecifier(node) || ts.isNamespaceImport(node);

/** What of a file is left in or taken out as one: a statement at its top, or a name that is imported or passed on. */
function partOf(declaration) {
  let node = declaration;
  while (!isSpecifier(node) && !ts.isSourceFile(node.parent)) node = node.parent;
  return node;
}

function textOf(statement, needed) {
  const text = statement.getFullText();
  const list = statement.importClause?.namedBindings ?? statement.exportClause;
  if (list?.elements) {
    const kept = list.elements.filter((one) => needed.has(one)).map((one) => one.getText());
    return kept.length === 0 ? '' : text.replace(/\{[^}]*\}/, `{ ${kept.join(', ')} }`);
  }
  const isWhole = ts.isExportDeclaration(statement) || needed.has(list ?? statement);
  return isWhole ? text : '';
}
