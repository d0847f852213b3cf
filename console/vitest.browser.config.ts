import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vite.config.ts";

/** Tests that let a browser use the console of a real server. */
export default mergeConfig(
  { ...base, test: {} },
  defineConfig({
    test: {
      environment: "node",
      include: ["test/browser/**/*.test.ts"],
      // One browser and one server at a time: they are what is measured.
      fileParallelism: false,
      testTimeout: 60_000,
      hookTimeout: 60_000,
    },
  }),
);
