// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestUsageOfSelf(t *testing.T) {
	used, err := usageOf(os.Getpid())
	if runtime.GOOS != "linux" {
		if err == nil || !strings.Contains(err.Error(), runtime.GOOS) {
			t.Errorf("error %v, want one that names the system", err)
		}
		return
	}
	if err != nil || used.Memory < 1<<20 || used.PeakMemory < used.Memory || used.CPU < 0 || used.CPU > time.Hour {
		t.Errorf("used %+v, %v", used, err)
	}
}
