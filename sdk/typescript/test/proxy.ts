import { connect, createServer, type Server as TcpServer, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

/** A proxy between reader and server that cuts each connection after so many bytes of the answer. */
export class Proxy {
  readonly #server: TcpServer;
  readonly #sockets = new Set<Socket>();
  /** How many bytes the next connection may carry. */
  room: () => number = () => Infinity;
  /** Connections so far. */
  connections = 0;

  private constructor(target: URL) {
    this.#server = createServer((reader) => {
      this.connections++;
      let left = this.room();
      const server = connect(Number(target.port), target.hostname);
      for (const socket of [reader, server]) {
        this.#sockets.add(socket);
        socket.on("error", () => socket.destroy());
        socket.on("close", () => {
          this.#sockets.delete(socket);
          reader.destroy();
          server.destroy();
        });
      }
      reader.on("data", (bytes) => void server.write(bytes));
      server.on("data", (bytes) => {
        const passed = bytes.subarray(0, left);
        left -= passed.length;
        // What was passed on has to arrive before the cut.
        reader.write(passed, () => {
          if (left <= 0) reader.destroy();
        });
      });
    });
  }

  /** Starts a proxy before a server. */
  static async start(target: string): Promise<Proxy> {
    const proxy = new Proxy(new URL(target));
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Cuts the next connection after so many bytes, and none after it. */
  cutFirstAfter(bytes: number): void {
    this.room = () => {
      this.room = () => Infinity;
      return bytes;
    };
  }

  /** Cuts every connection now. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
