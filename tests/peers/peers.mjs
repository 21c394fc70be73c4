// The clients of others against `nacre mcp`: each lists the tools, runs commands, follows a
// background shell, cancels, hears of progress, and is told of a completion. All of them check what
// they receive against their own schemas, and every message is checked against the official one.
// usage: NACRE=build/nacre node peers.mjs [WORD...]
//   only the cases whose name has one of the words
import { availableParallelism } from 'node:os';
import { askedV1, askedV2, rules } from './asking.mjs';
import { inspector } from './inspector.mjs';
import { sdk2024, sdkV1, sdkV2Legacy, sdkV2Modern } from './sdk.mjs';
import { removeStages, Stage } from './stage.mjs';
import { modernStranger, strangerOf } from './strangers.mjs';
import { checkWire } from './wire.mjs';

// Where the rules leave something to a person.
function asking(test) {
  return (stage) => {
    stage.env.NACRE_POLICY = rules;
    return test(stage);
  };
}

const cases = {
  'inspector, legacy': inspector('legacy'),
  'inspector, modern': inspector('modern'),
  'sdk 1.0, 2024-11-05': sdk2024,
  'sdk 1, 2025-11-25': sdkV1,
  'sdk 2, legacy, 2025-03-26': sdkV2Legacy('2025-03-26'),
  'sdk 2, legacy, 2025-06-18': sdkV2Legacy('2025-06-18'),
  'sdk 2, legacy, 2025-11-25': sdkV2Legacy('2025-11-25'),
  'sdk 2, auto': sdkV2Modern('auto'),
  'sdk 2, pinned to 2026-07-28': sdkV2Modern({ pin: '2026-07-28' }),
  'sdk 1, asked, 2025-11-25': asking(askedV1),
  'sdk 2, asked, 2025-06-18': asking(askedV2('legacy', '2025-06-18')),
  'sdk 2, asked, 2026-07-28': asking(askedV2({ pin: '2026-07-28' })),
  'strangers of 2024-11-05': strangerOf('2024-11-05'),
  'strangers of 2025-03-26': strangerOf('2025-03-26'),
  'strangers of 2025-06-18': strangerOf('2025-06-18'),
  'strangers of 2025-11-25': strangerOf('2025-11-25'),
  'strangers of 2026-07-28': modernStranger,
};

// Says how it went, and what was on the wire.
async function run(name, test) {
  const stage = new Stage();
  const began = performance.now();
  const faults = [];
  try {
    await test(stage);
  } catch (error) {
    faults.push(`${error.stack ?? error}\n${error.stderr ?? ''}`);
  }
  const wire = checkWire(stage.wire);
  faults.push(...wire.faults);
  if (wire.count === 0) faults.push('nothing was on the wire');
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`${faults.length === 0 ? 'ok    ' : 'FAILED'} ${name}: ${wire.count} messages of `
    + `${wire.kinds.size} kinds, ${seconds} s`);
  faults.forEach((fault) => console.log(fault));
  return faults.length === 0;
}

const words = process.argv.slice(2);
const chosen = Object.entries(cases).filter(([name]) =>
  words.length === 0 || words.some((word) => name.includes(word)));
const results = [];

// One case for each processor at a time: the Inspector gives its own parts half a second to answer
// each other, which is not enough if a dozen clients start at once.
async function work() {
  for (let next = chosen.shift(); next; next = chosen.shift()) results.push(await run(...next));
}
await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, work));
await removeStages();
const passed = results.filter((ok) => ok).length;
console.log(`${passed} passed, ${results.length - passed} failed`);
process.exit(passed === results.length && passed > 0 ? 0 : 1);
