import { createSseDecoder } from '../../core/sse.ts';

/**
 * The bytes of the AI SDK's SSE → the frames of one request. All viewers of a turn share those bytes, however they are
 * connected; only a frame's first fields are a request's own. Comments and cursors stay behind: the socket has pings,
 * and this client resumes with the whole message.
 */
export function createChunkFrames(requestId: string, send: (frame: string) => void) {
  const head = `{"type":"chunk","requestId":${JSON.stringify(requestId)},"sequence":`;
  let sequence = 0;
  return createSseDecoder({
    frame({ data }) {
      if (data !== '[DONE]') send(`${head}${sequence++},"chunk":${data}}`);
    },
  });
}
