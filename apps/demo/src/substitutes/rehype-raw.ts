/**
 * Stands in for `rehype-raw`, which would bring a whole HTML parser into the page in order to
 * render HTML inside of Markdown. What a model writes is shown here, never run: its tags appear
 * as the text they are. Saves a fifth of the bundle.
 */
type HastNode = { type: string; value?: string; children?: HastNode[] };

export default function showRawHtmlAsText(): (tree: HastNode) => void {
  return function visit(node) {
    if (node.type === 'raw') node.type = 'text';
    node.children?.forEach(visit);
  };
}
