/** What a message's parts look like: an element each, made once and then kept up to date. */

export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Parts that are not shown have an element too, so that places do not move. */
export function createPart({ type }, onAnswer) {
  if (type === 'text') return createText();
  if (type === 'reasoning') return createFold('reasoning', (part) => ['Thinking', part.text]);
  if (type === 'data-question') return createQuestion(onAnswer);
  if (type === 'data-queue') return createNote(({ data }) => toQueueText(data));
  if (type === 'file' || type.startsWith('source-')) return createLink();
  if (type === 'dynamic-tool' || type.startsWith('tool-')) return createFold('tool', toToolText);
  return createNote(() => '');
}

function createText() {
  const element = make('div');
  return { element, show: ({ text }) => element.replaceChildren(...toInline(text)) };
}

/** As much of Markdown as fits in a line. */
function toInline(text) {
  return text.split(/(\*\*[^*\n]+\*\*|`[^`\n]+`)/).map((piece) => {
    if (/^\*\*.+\*\*$/.test(piece)) return make('strong', {}, piece.slice(2, -2));
    return /^`.+`$/.test(piece) ? make('code', {}, piece.slice(1, -1)) : piece;
  });
}

function createFold(className, toTexts) {
  const title = make('summary');
  const body = make('pre');
  const show = (part) => {
    [title.textContent, body.textContent] = toTexts(part);
  };
  return { element: make('details', { className }, title, body), show };
}

const TOOL_STATES = {
  'input-streaming': 'is called',
  'input-available': 'works',
  'output-available': 'is done',
  'output-error': 'failed',
};

function toToolText({ type, toolName = type.slice('tool-'.length), state, ...part }) {
  const told = { input: part.input, output: part.output, error: part.errorText };
  return [`${toolName} ${TOOL_STATES[state] ?? state}`, JSON.stringify(told, null, 2)];
}

function createNote(toText) {
  const element = make('p', { className: 'note' });
  const show = (part) => {
    element.textContent = toText(part);
    element.hidden = element.textContent === '';
  };
  return { element, show };
}

function toQueueText({ status, position }) {
  return status === 'waiting' ? `Waits: place ${position} in the queue` : '';
}

function createLink() {
  const link = make('a', { rel: 'noopener noreferrer', target: '_blank' });
  const show = ({ url = '', title, filename, mediaType }) => {
    // An agent may name any address; a script is not one.
    if (/^(https?:|data:image\/)/i.test(url)) link.href = url;
    link.textContent = title || filename || mediaType || url;
  };
  return { element: make('p', { className: 'note' }, link), show };
}

function createQuestion(onAnswer) {
  const text = make('legend');
  const choices = make('div');
  const outcome = make('p', { className: 'note' });
  const show = ({ data: { questionId, text: words, options, status, answer } }) => {
    const isOpen = status === 'open';
    text.textContent = words;
    choices.hidden = !isOpen;
    outcome.hidden = isOpen;
    outcome.textContent = answer === undefined ? `(${status})` : `Answer: ${answer}`;
    // Made once: a button that is replaced loses the focus.
    if (choices.childElementCount > 0) return;
    const send = (given) => onAnswer(questionId, given);
    if (!options?.length) choices.append(createAnswerForm(send));
    for (const option of options ?? []) {
      choices.append(make('button', { type: 'button', onclick: () => send(option) }, option), ' ');
    }
  };
  return { element: make('fieldset', {}, text, choices, outcome), show };
}

function createAnswerForm(send) {
  const field = make('input', { required: true, ariaLabel: 'Your answer' });
  const onsubmit = (event) => {
    event.preventDefault();
    send(field.value);
  };
  return make('form', { onsubmit }, field, make('button', { type: 'submit' }, 'Answer'));
}
