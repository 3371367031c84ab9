// SPDX-License-Identifier: Apache-2.0

// Bounds tightens the schema of quantities in generated CRD manifests, which
// markers cannot do for a type of another module.
//
//	bounds FILE...
//
// The schema that controller-gen writes for resource.Quantity accepts
// exponents of any size, which take hours to parse, and fractions in exponents,
// which nothing parses.
package main

import (
	"bytes"
	"fmt"
	"os"
)

const (
	generated = `pattern: ^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$` + "\n"

	unsigned = `(([0-9]{1,40}(\.[0-9]{0,40})?)|(\.[0-9]{1,40}))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,3}))?$` + "\n"
	bounded  = `pattern: ^(\+|-)?` + unsigned
	// Of limits, which are not negative. A number has no text to match.
	positive = `pattern: ^\+?` + unsigned
	minimum  = "minimum: 0\n"
)

func main() {
	for _, path := range os.Args[1:] {
		if err := rewrite(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func rewrite(path string) error {
	manifest, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, bound(manifest), 0o644)
}

// bound returns the manifest with the schema of every quantity bounded.
func bound(manifest []byte) []byte {
	manifest = bytes.ReplaceAll(manifest, []byte(generated), []byte(bounded))
	if !bytes.Contains(manifest, []byte("\n    kind: NodePool\n")) {
		return manifest
	}
	head, limits, found := bytes.Cut(manifest, []byte("\n              limits:\n"))
	if !found {
		return manifest
	}
	at := bytes.Index(limits, []byte(bounded))
	indent := limits[bytes.LastIndexByte(limits[:at], '\n')+1 : at]
	return bytes.Join([][]byte{
		head, []byte("\n              limits:\n"), limits[:at],
		[]byte(minimum), indent, []byte(positive), limits[at+len(bounded):],
	}, nil)
}
