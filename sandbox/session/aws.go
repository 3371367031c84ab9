// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"karpenter/sandbox/fleet"
)

// ClusterName is what the cluster is called in the simulated AWS; subnets and security groups there carry the tag
// karpenter.sh/discovery with it, and the role of its instances is KarpenterNodeRole- and it.
const ClusterName = "sandbox"

// startAWS starts the simulated AWS, whose instances join the cluster, and returns what the controller must know. The
// account is kept in the cluster's folder, so that a cluster that is continued has its instances.
func (s *Session) startAWS(ctx context.Context, options *Options) ([]string, error) {
	fmt.Fprintln(options.Report, "sandbox: starting the simulated AWS")
	free, err := freePorts()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", free.metrics)
	if err := s.startSimulator(options, SimulatorName, "--listen", address, "--kubeconfig", s.Kubeconfig(), "--cluster-name", ClusterName,
		"--region", options.Region, "--journal", filepath.Join(s.dir, "awssim.journal")); err != nil {
		return nil, err
	}
	url := "http://" + address
	s.simulatorURL = url
	if s.prices, err = s.awaitPrices(ctx, http.DefaultClient, url+"/_awssim/prices"); err != nil {
		return nil, err
	}
	return []string{
		"CLOUD_PROVIDER=" + AWS, "CLUSTER_NAME=" + ClusterName, "INTERRUPTION_QUEUE=" + ClusterName, "CLUSTER_ENDPOINT=" + s.config.Host,
		"AWS_ENDPOINT_URL=" + url, "AWS_REGION=" + options.Region, "AWS_ACCESS_KEY_ID=sandbox", "AWS_SECRET_ACCESS_KEY=sandbox",
		"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull, "AWS_EC2_METADATA_DISABLED=true",
	}, nil
}

// awaitPrices returns the simulated cloud's prices as soon as it answers. It polls, as there is nothing to watch.
func (s *Session) awaitPrices(ctx context.Context, client *http.Client, url string) (fleet.Prices, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		prices, err := readPrices(ctx, client, url)
		if err == nil {
			return prices, nil
		}
		if s.simulator.Failures() > 0 {
			return nil, s.simulatorEnded()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the simulated cloud: %w (last answer: %w)", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// simulatorEnded returns an error if the simulated cloud keeps crashing.
func (s *Session) simulatorEnded() error {
	name := s.simulator.Name()
	return fmt.Errorf("%s ends by itself; see %s", name, filepath.Join(s.dir, "logs", name+".log"))
}

func readPrices(ctx context.Context, client *http.Client, url string) (fleet.Prices, error) {
	page, err := read(ctx, client, url)
	if err != nil {
		return nil, err
	}
	return parsePrices(bytes.NewReader(page))
}

// parsePrices reads lines of type, zone, capacity type and dollars.
func parsePrices(from io.Reader) (fleet.Prices, error) {
	prices := fleet.Prices{}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var o fleet.Offering
		var dollars float64
		if _, err := fmt.Sscan(lines.Text(), &o.Type, &o.Zone, &o.CapacityType, &dollars); err != nil {
			return nil, fmt.Errorf("price %q: %w", lines.Text(), err)
		}
		prices[o] = dollars
	}
	return prices, lines.Err()
}

// withoutClouds leaves out what the environment says of real clouds, which the sandbox must not reach. AWS_FEATURE_GATES
// is a setting of the controller.
func withoutClouds(environment []string) []string {
	return slices.DeleteFunc(slices.Clone(environment), func(variable string) bool {
		if strings.HasPrefix(variable, "AWS_FEATURE_GATES=") {
			return false
		}
		return slices.ContainsFunc([]string{"AWS_", "AZURE_", "ARM_", "IDENTITY_", "MSI_"}, func(prefix string) bool { return strings.HasPrefix(variable, prefix) })
	})
}
