/** Where useChat asks whether an answer is still being written. This app keeps none: no content. */
export function GET(): Response {
  return new Response(null, { status: 204 });
}
