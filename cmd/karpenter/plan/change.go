package plan

import "strings"

// Change is what a manifest would change of a NodePool.
type Change struct {
	Pool    string   `json:"nodePool"`
	Kind    string   `json:"change"`            // new, changed, deleted or same
	Fields  []string `json:"fields,omitempty"`  // what differs, in words
	Drifted []string `json:"drifted,omitempty"` // nodes that would drift, and had not
}

func (r Report) changes(b *strings.Builder) {
	if len(r.Changes) == 0 {
		return
	}
	rows := [][]string{{"NODEPOOL", "CHANGE", "DRIFTS", "WHAT"}}
	for _, c := range r.Changes {
		drifts := ""
		if len(c.Drifted) > 0 {
			drifts = counted(len(c.Drifted), "node")
		}
		rows = append(rows, []string{c.Pool, c.Kind, drifts, strings.Join(c.Fields, "; ")})
	}
	table(b, "with these manifests", rows)
}
