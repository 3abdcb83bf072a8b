// `curfew completions` prints the script of a shell. The scripts ask the hidden `curfew __complete` for words, so that they follow the
// commands of the installed version.
import type { Command, Candidates, Flag, Invocation } from "../command.ts";
import { GLOBAL_FLAGS } from "../command.ts";
import { Flags, UsageError } from "../arguments.ts";
import { connect } from "../connection.ts";
import { EXIT } from "../exit_codes.ts";

const BASH = `# curfew completions bash: add to ~/.bashrc  source <(curfew completions bash)
_curfew() {
  local IFS=$'\\n'
  COMPREPLY=($(curfew __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _curfew curfew
`;

const ZSH = `#compdef curfew
# curfew completions zsh: add to ~/.zshrc  source <(curfew completions zsh)
_curfew() {
  local -a candidates
  candidates=("\${(@f)$(curfew __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  candidates=(\${candidates:#})
  if (( \${#candidates} )); then
    compadd -a candidates
  else
    _files
  fi
}
if [ "\${funcstack[1]}" = "_curfew" ]; then
  _curfew "$@"
else
  compdef _curfew curfew
fi
`;

const FISH = `# curfew completions fish: curfew completions fish > ~/.config/fish/completions/curfew.fish
function __curfew_complete
  set -l words (commandline -opc) (commandline -ct)
  curfew __complete -- $words[2..-1] 2>/dev/null
end
complete -c curfew -f -a '(__curfew_complete)'
complete -c curfew -n '__fish_seen_subcommand_from put' -F
`;

const SCRIPTS: Record<string, string> = { bash: BASH, zsh: ZSH, fish: FISH };
const SHELLS = Object.keys(SCRIPTS);

export const completions: Command = {
  name: "completions",
  summary: "Prints the completions of a shell: commands, flags, ids of workflows and runs.",
  positionals: [{ name: "shell", candidates: SHELLS }],
  flags: [],
  examples: ["source <(curfew completions bash)", "curfew completions fish > ~/.config/fish/completions/curfew.fish"],
  run: async ({ words, output, terminal }) => {
    const script = SCRIPTS[words[0]!];
    if (script === undefined) throw new UsageError(`<shell> is one of ${SHELLS.join(", ")}, not "${words[0]!.slice(0, 40)}"`, completions);
    if (output.isJson) output.rawJson({ shell: words[0], script });
    else terminal.write(script);
    return EXIT.ok;
  },
};

/** A person waits for the key to take effect. */
const ANSWER_WITHIN_MS = 1_500;
const CANDIDATES_MAX = 100;

/** The words behind `--` are the command line up to the cursor; the last one is the beginning of a word. */
export function makeComplete(commands: () => readonly Command[]): Command {
  return {
    name: "__complete",
    summary: "Prints the words that may follow.",
    positionals: [{ name: "word", isOptional: true, isRepeated: true }],
    flags: [],
    examples: [],
    isHidden: true,
    run: async (invocation) => {
      // A completion never disturbs the line that is being written: no error, no delay.
      const found = await candidatesFor(invocation, commands()).catch(() => []);
      invocation.output.lines(...found);
      return EXIT.ok;
    },
  };
}

async function candidatesFor(invocation: Invocation, commands: readonly Command[]): Promise<string[]> {
  const line = invocation.words;
  const begun = line.at(-1) ?? "";
  const { command, place, values } = placeOf(line.slice(0, -1), commands);
  if (place === "verb") return commands.filter(({ isHidden }) => !isHidden).map(({ name }) => name).filter((name) => name.startsWith(begun));
  const flags = [...(command?.flags ?? []), ...GLOBAL_FLAGS];
  if (place === undefined || begun.startsWith("-")) {
    if (!begun.startsWith("-")) return [];
    return flags.filter(({ name, isRepeated }) => isRepeated || !values.has(name)).map(({ name }) => `--${name}`).filter((name) => name.startsWith(begun));
  }
  return wordsOf(place, begun, values, invocation);
}

/** What stands at the cursor: the verb, the value of a flag, or a word of the command. */
function placeOf(before: readonly string[], commands: readonly Command[]): { command: Command | undefined; place: Candidates | "verb" | undefined; values: Map<string, string[]> } {
  let command: Command | undefined;
  let words = 0;
  let awaited: Flag | undefined;
  const values = new Map<string, string[]>();
  for (const word of before) {
    if (awaited !== undefined) {
      values.set(awaited.name, [word]);
      awaited = undefined;
    } else if (word.startsWith("--")) {
      const [name = "", attached] = word.slice(2).split("=", 2);
      const flag = [...(command?.flags ?? []), ...GLOBAL_FLAGS].find((one) => one.name === name);
      values.set(name, attached === undefined ? [] : [attached]);
      if (flag?.value !== undefined && attached === undefined) awaited = flag;
    } else if (command === undefined) {
      command = commands.find(({ name }) => name === word);
      if (command === undefined) return { command, place: undefined, values };
    } else {
      words++;
    }
  }
  if (awaited !== undefined) return { command, place: awaited.candidates, values };
  if (command === undefined) return { command, place: "verb", values };
  const { positionals } = command;
  const positional = positionals[words] ?? positionals.find(({ isRepeated }) => isRepeated);
  const isHelp = command.name === "help" && words === 0;
  return { command, place: isHelp ? "verb" : positional?.candidates, values };
}

async function wordsOf(place: Candidates, begun: string, values: ReadonlyMap<string, string[]>, { environment }: Invocation): Promise<string[]> {
  if (typeof place !== "string") {
    // Values with commas: the last one is completed.
    const comma = begun.lastIndexOf(",") + 1;
    return place.filter((word) => word.startsWith(begun.slice(comma))).map((word) => begun.slice(0, comma) + word);
  }
  if (place === "file") return [];
  const api = connect(new Flags(values), environment, { retries: 0, timeout_ms: ANSWER_WITHIN_MS });
  if (place === "workflow") {
    const { items } = await api.list("workflows", { limit: 1_000 });
    return ids(items, begun);
  }
  const { items } = await api.runs({ limit: CANDIDATES_MAX, ...(begun === "" ? {} : { id_prefix: begun }) });
  return ids(items, begun);
}

const ids = (items: readonly { id: string }[], begun: string): string[] =>
  items
    .map(({ id }) => id)
    .filter((id) => id.startsWith(begun) && /^[\w.~-]+$/.test(id))
    .slice(0, CANDIDATES_MAX);

