// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
)

// Ports come from below the range that systems hand out to outgoing connections, so that a port is still free when its
// component restarts.
const (
	firstPort = 20000
	lastPort  = 32000
	portsEach = 3 // of a cluster
)

// ports are the loopback ports of one cluster.
type ports struct {
	API        int `json:"api"`
	EtcdClient int `json:"etcdClient"`
	EtcdPeer   int `json:"etcdPeer"`
}

// choosePorts returns the ports remembered in path where they are still free, and other free ones where not, and
// remembers them. moved reports whether a remembered API port had to be abandoned, which ends old kubeconfigs.
func choosePorts(path string) (chosen ports, moved bool, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ports{}, false, err
	}
	if err == nil {
		if err := json.Unmarshal(text, &chosen); err != nil {
			return ports{}, false, fmt.Errorf("read %s: %w; delete the file to have new ports chosen", path, err)
		}
	}
	wanted := chosen.API
	all := []*int{&chosen.API, &chosen.EtcdClient, &chosen.EtcdPeer}
	for _, port := range all {
		if *port == 0 {
			continue
		}
		listener, err := listen(*port)
		if err != nil {
			*port = 0
			continue
		}
		defer listener.Close() // held until all are chosen, so that they differ
	}
	for _, port := range all {
		if *port != 0 {
			continue
		}
		listener, err := listenAnywhere()
		if err != nil {
			return ports{}, false, err
		}
		defer listener.Close()
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	text, err = json.Marshal(chosen)
	if err != nil {
		return ports{}, false, err
	}
	return chosen, wanted != 0 && wanted != chosen.API, os.WriteFile(path, append(text, '\n'), 0o600)
}

// listen opens a port of the loopback device.
func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
}

// listenAnywhere opens a free port. It tries those of the process's number first: two clusters that start at once would
// find the same ones free until their components listen.
func listenAnywhere() (net.Listener, error) {
	const tries = 100
	var err error
	for try := range tries {
		var listener net.Listener
		if listener, err = listen(firstPort + (os.Getpid()*portsEach+try)%(lastPort-firstPort)); err == nil {
			return listener, nil
		}
	}
	return nil, fmt.Errorf("no free port on %s after %d tries: %w", loopback, tries, err)
}
