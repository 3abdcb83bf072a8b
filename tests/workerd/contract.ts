// Compares answers of the API with its OpenAPI document: status, headers, content type and body. The harness checks every answer.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

interface Response {
  content?: Record<string, { schema: object }>;
  headers?: Record<string, { $ref: string }>;
}

const path = join(fileURLToPath(new URL("../..", import.meta.url)), "src/api/openapi.json");
export const document = JSON.parse(readFileSync(path, "utf8"));

/** The words of OpenAPI are no part of JSON Schema, and formats are for readers. */
const ajv = new Ajv2020({ strict: false, validateSchema: false, validateFormats: false, inlineRefs: false });
ajv.addSchema(document, "contract");

/** Concrete paths before those with parameters. */
const templates = Object.keys(document.paths)
  .map((template) => ({ template, parts: template.split("/").slice(1) }))
  .sort((a, b) => a.parts.filter(isParameter).length - b.parts.filter(isParameter).length);

/** Headers that only some answers have. */
const SOMETIMES = ["x-curfew-bill", "www-authenticate", "allow", "retry-after"];

function isParameter(part: string): boolean {
  return part.includes("{");
}

/** As the API reads a path: slashes at the ends do not count, and a `:` may be encoded. */
function templateOf(path: string): string | undefined {
  const parts = path.replace(/%3a/gi, ":").replace(/^\/+|\/+$/g, "").split("/");
  const matches = (template: string, part: string) => (isParameter(template) ? new RegExp(`^${template.replace(".", "\\.").replace(/\{\w+\}/, ".+")}$`).test(part) : template === part);
  return templates.find((it) => it.parts.length === parts.length && it.parts.every((part, index) => matches(part, parts[index]!)))?.template;
}

/** Whether the document has the path. */
export const isKnownPath = (path: string): boolean => templateOf(path.split(/[?#]/)[0]!) !== undefined;

const escaped = (name: string) => name.replaceAll("~", "~0").replaceAll("/", "~1");

/** A JSON pointer into the document, behind references. */
function behindReference(pointer: string): { pointer: string; value: any } {
  const parts = pointer.split("/").slice(1);
  const value = parts.reduce((value, part) => value?.[part.replaceAll("~1", "/").replaceAll("~0", "~")], document);
  return typeof value?.$ref === "string" ? behindReference(value.$ref.slice(1)) : { pointer, value };
}

const validators = new Map<string, ValidateFunction>();

function validator(pointer: string): ValidateFunction {
  const found = validators.get(pointer) ?? ajv.compile({ $ref: `contract#${pointer.replaceAll("{", "%7B").replaceAll("}", "%7D")}` });
  validators.set(pointer, found);
  return found;
}

/** Where the document has the answer. An answer to no operation has a place of its own. */
function placeOf(method: string, path: string, status: number): { pointer: string; value: Response } | string {
  const template = templateOf(path);
  const operation = (method === "HEAD" ? "GET" : method).toLowerCase();
  if (template === undefined) return status === 404 ? behindReference("/x-curfew-unknown-path") : "the path is not in the document, so the status must be 404";
  if (!document.paths[template][operation]) {
    return status === 405 ? behindReference("/x-curfew-unknown-method") : `${template} has no ${method} in the document, so the status must be 405`;
  }
  const found = behindReference(`/paths/${escaped(template)}/${operation}/responses/${status}`);
  return found.value ? found : `${method} ${template} has no such status in the document`;
}

/** What the document does not say about the answer; undefined if all is well. */
export function breach(method: string, url: string, answer: Answer): string | undefined {
  const place = placeOf(method, url.split(/[?#]/)[0]!, answer.status);
  if (typeof place === "string") return place;
  const names = Object.keys(place.value.headers ?? {}).map((name) => name.toLowerCase());
  const missing = Object.entries(place.value.headers ?? {}).filter(([name, { $ref }]) => behindReference($ref.slice(1)).value.required && !answer.headers.has(name));
  if (missing.length > 0) return `the header ${missing[0]![0]} is missing`;
  const unknown = SOMETIMES.find((name) => answer.headers.has(name) && !names.includes(name));
  if (unknown !== undefined) return `the header ${unknown} is not in the document`;
  const { content = {} } = place.value;
  const type = (answer.headers.get("content-type") ?? "").split(";")[0]!;
  if (Object.keys(content).length === 0) return answer.text === "" ? undefined : "the document has no body here";
  if (!(type in content)) return `the content type is "${type}", in the document ${Object.keys(content).join(" or ")}`;
  if (method === "HEAD" || !/[/+]json$/.test(type)) return undefined;
  let body: unknown;
  try {
    body = JSON.parse(answer.text);
  } catch {
    return "the body is not JSON";
  }
  const validate = validator(`${place.pointer}/content/${escaped(type)}/schema`);
  if (validate(body)) return undefined;
  const problems = (validate.errors ?? []).map(({ instancePath, message, params }) => `${instancePath || "/"} ${message} ${JSON.stringify(params)}`);
  return `the body does not fit ${place.pointer}: ${problems.slice(0, 8).join("; ")}`;
}

/** Throws if a value that is sent another way than as the body of an answer has not this shape of the document. */
export function checkShape(name: string, value: unknown): void {
  const validate = validator(`/components/schemas/${name}`);
  if (!validate(value)) throw new Error(`the contract (src/api/openapi.json): no ${name}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value)}`);
}

/** Throws if the answer is not what the document says. */
export function checkAnswer(method: string, path: string, answer: Answer): void {
  const found = breach(method, path, answer);
  if (found === undefined) return;
  throw new Error(`the contract (src/api/openapi.json): ${method} ${path} answered ${answer.status}: ${found}\n${answer.text.slice(0, 2_000)}`);
}
