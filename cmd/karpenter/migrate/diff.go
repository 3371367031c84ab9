// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"io"

	"github.com/rogpeppe/go-internal/diff"
)

// WriteDiff writes a unified diff from the sources to the migrated files.
func WriteDiff(w io.Writer, sources []Source, files []File) error {
	for i, f := range files {
		if _, err := w.Write(diff.Diff("a/"+f.Name, []byte(sources[i].Text), "b/"+f.Name, []byte(f.Text))); err != nil {
			return err
		}
	}
	return nil
}
