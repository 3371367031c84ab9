// SPDX-License-Identifier: Apache-2.0

// Command release builds what a release consists of, without Docker, and pushes it:
//
//	go run . build --out ../bin/release            everything, from the source in ..
//	go run . push  --from ../bin/release REGISTRY  the image and the charts
//	go run . serve --from ../bin/release           the same, in a registry on this machine
//	go run . unpack IMAGE FOLDER                   the file system of an image
//
// The same source gives the same bytes: times are the Unix epoch, and the
// compiler leaves out paths.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: release build|push|serve|unpack; see `go doc .`")

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	source := flags.String("source", "..", "folder of the source")
	folder := flags.String("out", "../bin/release", "folder to write to")
	from := flags.String("from", "../bin/release", "folder that build wrote")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "platforms of the binaries; the image has those of Linux")
	plain := flags.Bool("plain-http", false, "the registry speaks HTTP")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch {
	case args[0] == "build" && flags.NArg() == 0:
		return build(ctx, *source, *folder, strings.Split(*platforms, ","), out)
	case args[0] == "push" && flags.NArg() == 1:
		return push(ctx, *from, flags.Arg(0), *plain, out)
	case args[0] == "serve" && flags.NArg() == 0:
		return serve(ctx, *from, out)
	case args[0] == "unpack" && flags.NArg() == 2:
		return unpack(ctx, flags.Arg(0), *plain, flags.Arg(1))
	}
	return errUsage
}
