// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed limits.json
var limits []byte

// Limits are the numbers of branch network interfaces of types, which no API of
// AWS tells.
type Limits struct {
	Source     string           `json:"source"`
	Date       string           `json:"date"`       // 2006-01-02
	BranchENIs map[string]int64 `json:"branchENIs"` // by type; 0 = no trunk to put them on
}

// BranchLimits returns the limits. The result is the caller's.
func BranchLimits() (*Limits, error) {
	out := &Limits{}
	if err := json.Unmarshal(limits, out); err != nil {
		return nil, fmt.Errorf("ec2 limits: %w", err)
	}
	return out, nil
}
