// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"time"
)

// WindowConfigMap names the ConfigMap in which AKS announces the next maintenance
// window.
const WindowConfigMap = "upcoming-maintenance-window"

const (
	windowStartKey = "aksManagedNodeOSUpgradeSchedule-start"
	windowEndKey   = "aksManagedNodeOSUpgradeSchedule-end"
)

// WindowOpen reports whether nodes may get newer images now, by the content of
// the ConfigMap. Without an announcement they always may.
func WindowOpen(announced map[string]string, now time.Time) (bool, error) {
	start, end := announced[windowStartKey], announced[windowEndKey]
	switch {
	case start == "" && end == "":
		return true, nil
	case start == "" || end == "":
		return false, fmt.Errorf("ConfigMap %s: only one of %s and %s is set", WindowConfigMap, windowStartKey, windowEndKey)
	}
	from, err := time.Parse(time.RFC3339, start)
	to, err2 := time.Parse(time.RFC3339, end)
	if err := errors.Join(err, err2); err != nil {
		return false, fmt.Errorf("ConfigMap %s: %w", WindowConfigMap, err)
	}
	return from.Before(now) && now.Before(to), nil
}
