// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"io"
	"os"
)

const (
	tailLines = 15
	tailBytes = 16 << 10
)

// Tail returns the last lines of a log, for a report; empty if it cannot be read.
func Tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, end-tailBytes), io.SeekStart)
	}
	text, err := io.ReadAll(io.LimitReader(f, tailBytes))
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-tailLines):], []byte("\n")))
}
