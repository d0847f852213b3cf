// Written by scripts/types.mjs from vectors/*/schema.json: `npm run types`. Do not edit.

import type * as AgUi from "./ag-ui.js";
import type * as Agio from "./agio.js";
import type * as EasyflowChat from "./easyflow-chat.js";
import type * as Loom from "./loom.js";
import type * as LoomExport from "./loom-export.js";
import type * as SocialApp from "./social-app.js";
import type * as StreamingEngine from "./streaming-engine.js";

export type { AgUi, Agio, EasyflowChat, Loom, LoomExport, SocialApp, StreamingEngine };

/** The frames of each dialect, by its name. */
export interface DialectFrames {
  "ag-ui": AgUi.Frame;
  "agio": Agio.Frame;
  "easyflow-chat": EasyflowChat.Frame;
  "loom": Loom.Frame;
  "loom-export": LoomExport.Frame;
  "social-app": SocialApp.Frame;
  "streaming-engine": StreamingEngine.Frame;
}

/** The names of these dialects. */
export const FRAME_DIALECTS: readonly (keyof DialectFrames)[] = ["ag-ui", "agio", "easyflow-chat", "loom", "loom-export", "social-app", "streaming-engine"];
