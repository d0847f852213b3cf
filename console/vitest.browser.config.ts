import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vite.config.ts";

/** Tests that let a browser use the console of a real server; in the mode `screenshots`, pictures of every page. */
export default defineConfig(({ mode }) =>
  mergeConfig(
    { ...base, test: {} },
    {
      test: {
        environment: "node",
        include: [mode === "screenshots" ? "test/browser/screenshots.ts" : "test/browser/**/*.test.ts"],
        // One browser and one server at a time: they are what is measured.
        fileParallelism: false,
        testTimeout: 60_000,
        hookTimeout: 60_000,
      },
    },
  ),
);
