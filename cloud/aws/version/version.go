// SPDX-License-Identifier: Apache-2.0

// Package version knows which version of Kubernetes the cluster runs. Images are
// made for one minor version each.
package version

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	apiversion "k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"karpenter/cloud/aws/client"
	"karpenter/cloud/loop"
)

// Period is the time between two looks.
const Period = 5 * time.Minute

// The minor versions that this program is made for.
const (
	oldest = 26
	newest = 37
)

// Discovery is the API server's word about its version, such as
// discovery.ServerVersionInterface.
type Discovery interface {
	ServerVersion() (*apiversion.Info, error)
}

// Config is what a Cluster works with.
type Config struct {
	// Discovery is asked, unless EKS is set: then the version is that of the
	// EKS cluster called Name.
	Discovery Discovery
	EKS       client.EKS
	Name      string
}

// Cluster is the cluster's version. It may be used concurrently.
type Cluster struct {
	config Config

	mu    sync.Mutex
	known string
}

// New returns a Cluster of an unknown version; see Refresh.
func New(config Config) *Cluster { return &Cluster{config: config} }

// Register adds the controller providers.version to the manager.
func (c *Cluster) Register(mgr manager.Manager) error {
	return loop.Every(mgr, "providers.version", Period, c.Refresh)
}

// Version returns the version as "1.33", or "" before the first Refresh.
func (c *Cluster) Version() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

// Refresh asks for the version. A version this program is not made for is logged
// once. After an error the version that was known stays.
func (c *Cluster) Refresh(ctx context.Context) error {
	text, err := c.ask(ctx)
	if err != nil {
		return fmt.Errorf("version of the cluster: %w", err)
	}
	major, minor, _ := strings.Cut(text, ".")
	n, err := strconv.Atoi(minor)
	if major == "" || err != nil {
		return fmt.Errorf("version of the cluster: %q is none", text)
	}
	c.mu.Lock()
	changed := c.known != text
	c.known = text
	c.mu.Unlock()
	if changed && (major != "1" || n < oldest || n > newest) {
		log.FromContext(ctx).Error(errors.New("unsupported version of Kubernetes"),
			"going on, but nodes may fail to join", "version", text, "supported", fmt.Sprintf("1.%d to 1.%d", oldest, newest))
	}
	return nil
}

func (c *Cluster) ask(ctx context.Context) (string, error) {
	if c.config.EKS == nil {
		info, err := c.config.Discovery.ServerVersion()
		if err != nil {
			return "", err
		}
		return info.Major + "." + strings.TrimSuffix(info.Minor, "+"), nil
	}
	out, err := c.config.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &c.config.Name})
	if err != nil {
		return "", err
	}
	if out.Cluster == nil {
		return "", fmt.Errorf("EKS knows nothing of cluster %s", c.config.Name)
	}
	return aws.ToString(out.Cluster.Version), nil
}
