// SPDX-License-Identifier: Apache-2.0

package wiring_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"karpenter/cloud/aws/awsfake"
)

// TestStartWithZonalShift covers the start-up with --enable-zonal-shift: neither
// an error of AWS nor a shift under way, of which no NodePool can be told before
// the caches are filled, keeps the process from starting.
func TestStartWithZonalShift(t *testing.T) {
	for name, spoil := range map[string]func(*awsfake.AWS){
		"Application Recovery Controller refuses": func(a *awsfake.AWS) { a.Fail("GetManagedResource", awsfake.Failure{Code: "AccessDeniedException"}) },
		"Application Recovery Controller fails": func(a *awsfake.AWS) {
			a.Fail("GetManagedResource", awsfake.Failure{Code: "InternalServerException", Server: true})
		},
		"EKS does not tell the ARN":   func(a *awsfake.AWS) { a.Fail("DescribeCluster", awsfake.Failure{Code: "ThrottlingException"}) },
		"a zone is shifted away from": func(a *awsfake.AWS) { a.ShiftAway("usw2-az1", time.Now().Add(time.Hour), true) },
	} {
		t.Run(name, func(t *testing.T) {
			account, err := awsfake.New(awsfake.Config{Clock: clock.RealClock{}})
			if err != nil {
				t.Fatal(err)
			}
			spoil(account)
			reg := &recording{Registry: prometheus.NewPedanticRegistry()}
			if err := wireOn(t, account, reg, "--enable-zonal-shift", "--cluster-endpoint=https://cluster.example"); err != nil {
				t.Error(err)
			}
		})
	}
}
