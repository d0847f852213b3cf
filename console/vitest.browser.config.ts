import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vite.config.ts";

/** Browser tests with a real server; in the mode `screenshots`, screenshots of every page. */
export default defineConfig(({ mode }) =>
  mergeConfig(
    { ...base, test: {} },
    {
      test: {
        environment: "node",
        include: [mode === "screenshots" ? "test/browser/screenshots.ts" : "test/browser/**/*.test.ts"],
        // One browser and one server at a time, because their performance is measured.
        fileParallelism: false,
        testTimeout: 60_000,
        hookTimeout: 60_000,
      },
    },
  ),
);
