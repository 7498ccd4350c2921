// The looks at a person as cards show them: moments without a score.
import { media, written } from "./api.js";
import { clock } from "./format.js";

export function asHits(faces) {
  return faces.map(({ content, start, end, thumb }) => ({
    content, start, end, thumb, name: `${clock(start)} – ${clock(end)}`, path: "", kind: "video", duration: end - start, file: true, why: [],
    media: media(content), preview: `/api/preview/${encodeURIComponent(content)}${written({ start, end })}`,
  }));
}
