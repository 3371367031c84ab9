// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"io"

	"github.com/rogpeppe/go-internal/diff"
)

// WriteDiff writes how the files differ from their sources, as a unified diff.
func WriteDiff(w io.Writer, sources []Source, files []File) error {
	for i, f := range files {
		if _, err := w.Write(diff.Diff("a/"+f.Name, []byte(sources[i].Text), "b/"+f.Name, []byte(f.Text))); err != nil {
			return err
		}
	}
	return nil
}
