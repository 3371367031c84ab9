// SPDX-License-Identifier: Apache-2.0

package azurevm

import "testing"

// Raw returns the objects of the data on sizes.
func Raw(t *testing.T) []map[string]any {
	t.Helper()
	var out []map[string]any
	if err := decode(sizes, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
