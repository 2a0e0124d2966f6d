/** Turns as OpenTelemetry spans: the only file that imports `@opentelemetry/api`. */
import {
  type Context,
  context,
  isSpanContextValid,
  type Link,
  propagation,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { Telemetry, TurnAttributes, TurnEnd, TurnSpan, TurnStart } from './telemetry.ts';

export type OtelOptions = {
  /** @default the tracer `sabir` of the global tracer provider */
  tracer?: Tracer;
};

/** Clients choose some of the ids, and agents the codes of their errors. */
const ATTRIBUTE_LENGTH = 200;

/**
 * A span `sabir.turn` for each turn, from the request to the outcome, with an event for the first
 * byte, each resume, question, answer and stop. Its parent is the active span, else the request's
 * `traceparent`, by the propagator that the application has registered.
 *
 * @example
 * createChatGateway({ telemetry: otel(), upstream, authenticate, access });
 */
export function otel({ tracer = trace.getTracer('sabir') }: OtelOptions = {}): Telemetry {
  return {
    startTurn(turn) {
      const asked = contextOf(turn);
      // A stranger could have every turn sampled, or attach it to another trace.
      const parent = turn.isPublic ? context.active() : asked;
      const links = [
        ...(turn.isPublic ? linksTo(asked) : []),
        ...(turn.takenOverFrom ? [{ context: spanContextOf(turn.takenOverFrom) }] : []),
      ];
      const span = tracer.startSpan(
        'sabir.turn',
        {
          kind: SpanKind.SERVER,
          links,
          startTime: turn.startedAt,
          attributes: bounded(turn.attributes),
        },
        parent,
      );
      return toTurnSpan(span, parent);
    },
  };
}

function toTurnSpan(span: Span, parent: Context): TurnSpan {
  const active = trace.setSpan(parent, span);
  return {
    traceparent: traceparentOf(span),
    set: (attributes) => void span.setAttributes(bounded(attributes)),
    event: (name, attributes = {}) => void span.addEvent(name, bounded(attributes)),
    end(end) {
      const { outcome, code, chunks } = end;
      const about = bounded({
        'sabir.outcome': outcome,
        ...(code !== undefined && { 'sabir.error.code': code }),
      });
      span.addEvent('outcome', about);
      span.setAttributes({ ...about, 'sabir.chunks': chunks });
      if (hasFailed(end)) span.setStatus({ code: SpanStatusCode.ERROR, message: code ?? outcome });
      span.end();
    },
    run: (work) => context.with(active, work),
  };
}

function bounded(attributes: TurnAttributes): TurnAttributes {
  const entries = Object.entries(attributes).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.slice(0, ATTRIBUTE_LENGTH) : value,
  ]);
  return Object.fromEntries(entries);
}

function hasFailed({ outcome }: TurnEnd): boolean {
  return outcome === 'failed' || outcome === 'lost';
}

/** Where the request was traced already, as by an instrumentation of HTTP, that span is the parent. */
function contextOf({ headers }: TurnStart): Context {
  const active = context.active();
  return headers && !trace.getSpan(active) ? propagation.extract(active, headers, HEADERS) : active;
}

function linksTo(remote: Context): Link[] {
  const spanContext = trace.getSpanContext(remote);
  return spanContext && isSpanContextValid(spanContext) ? [{ context: spanContext }] : [];
}

/** As W3C Trace Context has it, whichever propagator the application uses elsewhere. */
function traceparentOf(span: Span): string | undefined {
  const { traceId, spanId, traceFlags } = span.spanContext();
  if (!isSpanContextValid(span.spanContext())) return undefined;
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** Of a gateway of ours, which wrote it as above. */
function spanContextOf(traceparent: string): SpanContext {
  const [, traceId = '', spanId = '', flags = '0'] = traceparent.split('-');
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}

const HEADERS: TextMapGetter<Headers> = {
  get: (headers, name) => headers.get(name) ?? undefined,
  keys: (headers) => [...headers.keys()],
};
