// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// orphanGrace is how long components may take to end after their supervisor was killed.
const orphanGrace = 15 * time.Second

// lockDir takes the folder's lock, which the returned file holds while it is open in any process. Components inherit
// it: after a supervisor was killed the folder stays locked until its components, too, have ended.
func lockDir(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := acquire(ctx, f); err != nil {
		f.Close()
		return nil, err
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

func acquire(ctx context.Context, f *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, orphanGrace)
	defer cancel()
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		owner := readPID(f)
		if owner > 0 && syscall.Kill(owner, 0) == nil {
			return fmt.Errorf("another sandbox (process %d) runs on this folder (%s); stop it first or choose another folder",
				owner, f.Name())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("components of a killed sandbox (process %d) still run on this folder (%s); "+
				"end the processes named in its pids folder", owner, f.Name())
		case <-retry.C:
		}
	}
}

// readPID returns the process id in the file, 0 if there is none.
func readPID(f *os.File) int {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
