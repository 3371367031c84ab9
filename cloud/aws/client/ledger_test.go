// SPDX-License-Identifier: Apache-2.0

package client

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestLedger: an operation fails from its first failure on until an answer follows.
func TestLedger(t *testing.T) {
	start := time.Unix(0, 0)
	clock := clocktesting.NewFakePassiveClock(start)
	l := &Ledger{Clock: clock}
	api := service(t, NewMetrics(prometheus.NewRegistry(), clock), clock,
		http.StatusOK, http.StatusForbidden, http.StatusForbidden, http.StatusOK)
	after := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	const name = "ec2:DescribeSubnets"
	for i, want := range []Outcome{
		{Action: name, Answered: after(1)},
		{Action: name, Answered: after(1), Failing: after(2), Code: "UnauthorizedOperation", Refused: true},
		{Action: name, Answered: after(1), Failing: after(2), Code: "UnauthorizedOperation", Refused: true},
		{Action: name, Answered: after(4)},
	} {
		_, err := api.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}, func(o *ec2.Options) { o.APIOptions = append(o.APIOptions, l.Extend) })
		if (err != nil) != want.Refused {
			t.Fatalf("call %d: %v", i, err)
		}
		if got := l.Outcomes(); !reflect.DeepEqual(got, []Outcome{want}) {
			t.Errorf("call %d: %+v, want %+v", i, got, want)
		}
	}
	if got := action("ARC Zonal Shift", "GetManagedResource"); got != "arc-zonal-shift:GetManagedResource" {
		t.Errorf("action %s", got)
	}
}
