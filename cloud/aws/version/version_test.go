// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/go-logr/logr/funcr"
	apiversion "k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/cloud/aws/version"
)

// server answers with a version, or an error when it has none.
type server struct{ major, minor string }

func (s *server) ServerVersion() (*apiversion.Info, error) {
	if s.major == "" {
		return nil, errors.New("down")
	}
	return &apiversion.Info{Major: s.major, Minor: s.minor}, nil
}

type cluster string

func (c cluster) DescribeCluster(_ context.Context, in *eks.DescribeClusterInput, _ ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	if *in.Name != "mine" {
		return nil, errors.New("which?")
	}
	text := string(c)
	return &eks.DescribeClusterOutput{Cluster: &types.Cluster{Version: &text}}, nil
}

func TestRefresh(t *testing.T) {
	var logged int
	ctx := log.IntoContext(t.Context(), funcr.New(func(string, string) { logged++ }, funcr.Options{}))
	s := &server{}
	c := version.New(version.Config{Discovery: s})
	for _, step := range []struct {
		major, minor, want string
		fails              bool
		logged             int
	}{
		{"", "", "", true, 0},
		{"1", "33", "1.33", false, 0},
		{"1", "34+", "1.34", false, 0},
		{"", "", "1.34", true, 0},
		{"1", "", "1.34", true, 0},
		{"1", "38", "1.38", false, 1},
		{"1", "38", "1.38", false, 1}, // said once
		{"1", "25", "1.25", false, 2},
		{"1", "37", "1.37", false, 2},
		{"1", "38", "1.38", false, 3},
	} {
		s.major, s.minor = step.major, step.minor
		err := c.Refresh(ctx)
		if got := c.Version(); got != step.want || (err != nil) != step.fails || logged != step.logged {
			t.Errorf("%s.%s: %q, %v, %d lines", step.major, step.minor, got, err, logged)
		}
	}
}

func TestOfEKS(t *testing.T) {
	c := version.New(version.Config{EKS: cluster("1.35"), Name: "mine"})
	if err := c.Refresh(t.Context()); err != nil || c.Version() != "1.35" {
		t.Errorf("%q, %v", c.Version(), err)
	}
}
