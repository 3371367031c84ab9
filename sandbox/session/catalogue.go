package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
)

// writeCatalogue has the controller print what EC2 sells in the region, and keeps it at path. A file that is there
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

// ports are where the controller serves.
type ports struct {
	metrics, health, explain int
}

// freePorts finds ports nobody listens on. Somebody else may take one before the controller does; then the controller
// ends, and says so.
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
	return ports{metrics: found[0], health: found[1], explain: found[2]}, closeAll(listeners[:])
}

func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
