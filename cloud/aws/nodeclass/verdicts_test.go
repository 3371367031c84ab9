// SPDX-License-Identifier: Apache-2.0

package nodeclass

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestValidity: spec 48 §13.3: verdicts hold for 25 to 35 minutes, those on one class
// equally long, those on different classes not.
func TestValidity(t *testing.T) {
	least, most := time.Hour, time.Duration(0)
	for i := range 1000 {
		uid := types.UID(fmt.Sprint("class-", i))
		d := validity(uid)
		if again := validity(uid); again != d {
			t.Fatalf("%s: %v, then %v", uid, d, again)
		}
		least, most = min(least, d), max(most, d)
	}
	if least < 25*time.Minute || most >= 35*time.Minute || most-least < 9*time.Minute {
		t.Errorf("verdicts hold for %v to %v", least, most)
	}
}
