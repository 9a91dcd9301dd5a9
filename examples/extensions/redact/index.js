// Hides secrets in what the assistant says. A host that speaks the effect dialect has the text changed while it streams; any
// other asks about the whole message, and changes only what the user sees.
"use strict";

const HIDDEN = "[redacted]";

// Every repetition that may fail afterwards is bounded, so that no text makes the search slow. A capture is what stays.
const SECRETS = [
  // First, because a key's lines may look like other secrets. A key that is cut off before its end is hidden as well.
  {
    kind: "private key",
    shape: /()-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:[^-]|-(?!----END ))*(?:-----END [A-Z ]{0,40}-----)?/g,
  },
  { kind: "API key", shape: /\b()sk-[\w-]{16,}/g },
  { kind: "GitHub token", shape: /\b()(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})/g },
  { kind: "AWS access key", shape: /\b()(?:AKIA|ASIA)[A-Z0-9]{16}\b/g },
  // `password=x` and `"password": "x"`, but not `password == x` and not prose such as "password: see below".
  {
    kind: "password",
    shape: new RegExp(
      "((?:password|passwd|passphrase)[\"']?[ \\t]{0,8}(?:=(?!=)|:(?=[ \\t]{0,8}[\"']))[ \\t]{0,8})" +
        "(?:\"[^\"\\n]+\"|'[^'\\n]+'|[^\\s\"',;&]+)",
      "gi",
    ),
  },
];

/** Returns the text without its secrets, and the kinds that were found, each once. */
function redact(text) {
  const kinds = [];
  for (const { kind, shape } of SECRETS) {
    const safer = text.replace(shape, (_match, kept) => kept + HIDDEN);
    if (safer !== text) kinds.push(kind);
    text = safer;
  }
  return { text, kinds };
}

// What may be the begin of a secret, at the end of a text that goes on: it is held, and comes again with what follows.
const OPEN = [
  /\S*$/,
  /(?:password|passwd|passphrase)["']?[ \t]{0,8}(?:[=:][ \t]{0,8}(?:"[^"\n]*|'[^'\n]*|[^\s"',;&]*)?)?$/i,
  /-----BEGIN [A-Z ]{0,40}(?:-{0,5}$|PRIVATE KEY-----(?:[^-]|-(?!----END ))*(?:-----END [A-Z ]{0,40}-{0,4})?$)/,
];

/** How much of a text can be looked at as it stands, whatever follows. */
function sureOf(text) {
  return Math.min(...OPEN.map((shape) => text.search(shape)).filter((place) => place >= 0));
}

/** Writes one frame: one line of JSON. */
function send(frame, written) {
  process.stdout.write(JSON.stringify(frame) + "\n", written);
}

function intercepted(frame) {
  const answer = { type: "event_intercept_response", id: frame.id };
  if (frame.event !== "assistant_message" || typeof frame.text !== "string") {
    send(answer); // not ours, but a question without an answer makes the agent wait until its deadline
    return;
  }
  const { text, kinds } = redact(frame.text);
  if (kinds.length === 0) {
    send(answer); // without replace_text the message stays as it is
    return;
  }
  send({ ...answer, replace_text: text });
  tell(kinds);
}

let found = []; // kinds of secrets in the message that streams

function invoked(frame) {
  const { event, payload } = frame.envelope;
  const answer = { type: "invoke_result", id: frame.id };
  if (event !== "message_delta") {
    send(answer);
    return;
  }
  const sure = payload.final ? payload.text.length : sureOf(payload.text);
  const { text, kinds } = redact(payload.text.slice(0, sure));
  const held = payload.text.slice(sure);
  // The host counts characters, where JavaScript counts a character outside the basic plane as two.
  send({ ...answer, actions: [{ kind: "replace_text", text: text + held, hold: [...held].length }] });
  found.push(...kinds.filter((kind) => !found.includes(kind)));
  if (payload.final) {
    if (found.length > 0) tell(found);
    found = [];
  }
}

function tell(kinds) {
  send({ type: "notify", level: "warn", message: `hidden in the last message: ${kinds.join(", ")}` });
}

function received(line) {
  let frame;
  try {
    frame = JSON.parse(line); // a CR before the LF is white space to it
  } catch (error) {
    console.error(`redact: skipped a line: ${error.message}`); // stderr is the log
    return;
  }
  switch (frame?.type) {
    case "hello_ack":
      if (frame.dialect?.events.includes("message_delta")) {
        send({ type: "register", registration_id: 1, kind: "hook", descriptor: { event: "message_delta" } });
      } else {
        send({ type: "subscribe", intercept: ["assistant_message"] });
      }
      send({ type: "ready" });
      break;
    case "invoke":
      invoked(frame);
      break;
    case "event_intercept":
      intercepted(frame);
      break;
    case "shutdown":
      // Exit once the frame has left: process.exit() drops what still waits to be written.
      send({ type: "shutdown_ack" }, () => process.exit(0));
      break;
    default: // from a newer host, or not for us
  }
}

// Not the readline module: it also splits at U+2028, which JSON may hold unescaped inside a string.
let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  lines.forEach(received);
});
// At end of input nothing is left to wait for, and Node ends by itself. What follows the last LF is no frame.

process.stdout.on("error", () => process.exit(0)); // the host is gone

send({ type: "hello", name: "redact", version: "0.1.0", capabilities: ["events", "effects"] });
