// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"karpenter/kube/meter"
)

// server answers after a while, and not at all at /api/v1/secrets.
type server struct {
	clock *clocktesting.FakePassiveClock
}

func (s server) RoundTrip(q *http.Request) (*http.Response, error) {
	s.clock.SetTime(s.clock.Now().Add(30 * time.Millisecond))
	if q.URL.Path == "/api/v1/secrets" {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: http.StatusConflict}, nil
}

// TestRequests covers client_go_request_total and _duration_seconds of spec 50 §5:
// what a request is about, whatever its path.
func TestRequests(t *testing.T) {
	for _, tc := range []struct{ path, labels string }{
		{"/api/v1/nodes", `group="",kind="nodes",subresource="",verb="PATCH",version="v1"`},
		{"/api/v1/nodes/a/status", `group="",kind="nodes",subresource="status",verb="PATCH",version="v1"`},
		{"/api/v1/namespaces/a", `group="",kind="namespaces",subresource="",verb="PATCH",version="v1"`},
		{"/api/v1/namespaces/a/status", `group="",kind="namespaces",subresource="status",verb="PATCH",version="v1"`},
		{"/api/v1/namespaces/a/pods", `group="",kind="pods",subresource="",verb="PATCH",version="v1"`},
		{"/api/v1/namespaces/a/pods/b/eviction", `group="",kind="pods",subresource="eviction",verb="PATCH",version="v1"`},
		{"/k8s/clusters/c/apis/karpenter.sh/v1/nodeclaims/a", `group="karpenter.sh",kind="nodeclaims",subresource="",verb="PATCH",version="v1"`},
		{"/apis/karpenter.sh/v1", `group="",kind="",subresource="",verb="PATCH",version=""`},
		{"/apis", `group="",kind="",subresource="",verb="PATCH",version=""`},
		{"/version", `group="",kind="",subresource="",verb="PATCH",version=""`},
	} {
		reg := prometheus.NewPedanticRegistry()
		clk := clocktesting.NewFakePassiveClock(time.Time{})
		ask(t, meter.NewRequests(reg, clk).Wrap(server{clk}), tc.path)
		want := `
# HELP client_go_request_total Number of requests to the API server, by HTTP status, <error> where there was no answer.
# TYPE client_go_request_total counter
client_go_request_total{code="409",method="PATCH"} 1
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "client_go_request_total"); err != nil {
			t.Error(err)
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		h := families[0].GetMetric()[0]
		var labels []string
		for _, l := range h.GetLabel() {
			labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
		}
		if got := strings.Join(labels, ","); got != tc.labels || h.GetHistogram().GetSampleSum() != 0.03 {
			t.Errorf("%s: %s %v, want %s 0.03", tc.path, got, h.GetHistogram().GetSampleSum(), tc.labels)
		}
	}
}

// TestRequestsWithoutDuration: a watch lasts as long as it likes, and what is not
// answered is counted.
func TestRequestsWithoutDuration(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	clk := clocktesting.NewFakePassiveClock(time.Time{})
	through := meter.NewRequests(reg, clk).Wrap(server{clk})
	ask(t, through, "/api/v1/nodes?watch=true")
	if n, err := testutil.GatherAndCount(reg, "client_go_request_duration_seconds"); n != 0 || err != nil {
		t.Errorf("%d durations of a watch, %v", n, err)
	}
	ask(t, through, "/api/v1/secrets")
	want := `
# HELP client_go_request_total Number of requests to the API server, by HTTP status, <error> where there was no answer.
# TYPE client_go_request_total counter
client_go_request_total{code="409",method="PATCH"} 1
client_go_request_total{code="<error>",method="PATCH"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "client_go_request_total"); err != nil {
		t.Error(err)
	}
}

func ask(t *testing.T, through http.RoundTripper, url string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := through.RoundTrip(q); err == nil && answer.Body != nil {
		t.Error("the answer has a body")
	}
}
