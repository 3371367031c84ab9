// SPDX-License-Identifier: Apache-2.0

//go:build !nocontroller

package main

import (
	"bytes"
	"runtime"
	"testing"
)

// TestShrink covers a process that has needed much memory once.
func TestShrink(t *testing.T) {
	const much = 128 << 20
	once := bytes.Repeat([]byte{1}, much)
	runtime.GC()
	if _, live := heap(); live < much {
		t.Errorf("%d bytes are in use, want %d at least", live, much)
	}
	runtime.KeepAlive(once)
	runtime.GC()
	shrink()
	if free, live := heap(); free > much/2 || live > much {
		t.Errorf("%d bytes are free and kept, %d in use", free, live)
	}
}
