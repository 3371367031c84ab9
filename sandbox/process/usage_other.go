// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"errors"
	"runtime"
)

func usageOf(int) (Usage, error) {
	return Usage{}, errors.New("peak memory and CPU time are not read on " + runtime.GOOS)
}
