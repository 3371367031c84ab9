// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// writeCatalogue has the controller print what EC2 offers in the region, and keeps it at path. A file that is there
// appears whole.
func writeCatalogue(ctx context.Context, controller, region, path string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, controller, "instance-types", "--catalogue", "ec2", "--region", region)
	cmd.Stderr = &said
	types, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("instance types: %s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(said.String()))
	}
	if err := os.WriteFile(path+".new", types, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// furnishKWOK writes the instance types of the simulated cloud, and returns the environment for the
// controller.
func (s *Session) furnishKWOK(ctx context.Context, options *Options) ([]string, error) {
	types := options.InstanceTypes
	if types == "" {
		types = filepath.Join(s.dir, "instance-types.json")
		if err := writeCatalogue(ctx, options.Controller, options.Region, types); err != nil {
			return nil, err
		}
	}
	types, err := filepath.Abs(types)
	return []string{"CLOUD_PROVIDER=" + KWOK, "INSTANCE_TYPES_FILE_PATH=" + types}, err
}

// ports are where the controller serves.
type ports struct {
	metrics, health, page int
}

// freePorts finds ports no one listens on. Another process may take a port
// before the controller does. Then the controller exits with an error.
func freePorts() (ports, error) {
	var found [3]int
	var listeners [3]net.Listener
	for i := range found {
		l, err := net.Listen("tcp", ":0")
		if err != nil {
			return ports{}, fmt.Errorf("find a free port: %w", errors.Join(err, closeAll(listeners[:i])))
		}
		listeners[i], found[i] = l, l.Addr().(*net.TCPAddr).Port
	}
	return ports{metrics: found[0], health: found[1], page: found[2]}, closeAll(listeners[:])
}

func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
