// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/middleware"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"
)

// service is an EC2 that gives the answers in turn; each takes a second.
func service(t *testing.T, m *Metrics, clock *clocktesting.FakePassiveClock, statuses ...int) EC2 {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		clock.SetTime(clock.Now().Add(time.Second))
		status := statuses[0]
		statuses = statuses[1:]
		w.WriteHeader(status)
		body := `<DescribeSubnetsResponse><subnetSet/></DescribeSubnetsResponse>`
		if status != http.StatusOK {
			body = `<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors><RequestID>req-1</RequestID></Response>`
		}
		if status == http.StatusServiceUnavailable {
			body = strings.Replace(body, "UnauthorizedOperation", "RequestLimitExceeded", 1)
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return ec2.New(ec2.Options{
		Region: "us-west-2", BaseEndpoint: &server.URL, APIOptions: []func(*middleware.Stack) error{m.Extend},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}),
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		}),
	})
}

func TestMetrics(t *testing.T) {
	clock, registry := clocktesting.NewFakePassiveClock(time.Unix(0, 0)), prometheus.NewRegistry()
	m := NewMetrics(registry, clock)
	api := service(t, m, clock, http.StatusServiceUnavailable, http.StatusOK, http.StatusForbidden)
	if _, err := api.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}); !Unauthorized(err) {
		t.Fatal(err)
	}
	for _, want := range []struct {
		what string
		got  float64
		want float64
	}{
		{"requests answered", testutil.ToFloat64(m.requests.WithLabelValues("EC2", "DescribeSubnets", "200")), 1},
		{"requests refused", testutil.ToFloat64(m.requests.WithLabelValues("EC2", "DescribeSubnets", "403")), 1},
		{"attempts answered", testutil.ToFloat64(m.attempts.WithLabelValues("EC2", "DescribeSubnets", "200")), 1},
		{"attempts throttled", testutil.ToFloat64(m.attempts.WithLabelValues("EC2", "DescribeSubnets", "503")), 1},
		{"attempts refused", testutil.ToFloat64(m.attempts.WithLabelValues("EC2", "DescribeSubnets", "403")), 1},
	} {
		if want.got != want.want {
			t.Errorf("%s: %v, want %v", want.what, want.got, want.want)
		}
	}
	sums := map[string]float64{}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.Metric {
			if h := metric.GetHistogram(); h != nil {
				sums[family.GetName()] += h.GetSampleSum()
			}
		}
	}
	for name, want := range map[string]float64{
		"aws_sdk_go_request_duration_seconds": 3, "aws_sdk_go_request_attempt_duration_seconds": 3, "aws_sdk_go_request_retry_count": 1,
	} {
		if sums[name] != want {
			t.Errorf("%s sums up to %v, want %v", name, sums[name], want)
		}
	}
}

func TestCallWithoutResponse(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	m := NewMetrics(prometheus.NewRegistry(), clock)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := service(t, m, clock).DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{}); err == nil {
		t.Fatal("answered")
	}
	if n := testutil.ToFloat64(m.requests.WithLabelValues("EC2", "DescribeSubnets", "0")); n != 1 {
		t.Errorf("%v requests without an answer, want 1", n)
	}
}

// spec 65 §1, step 1: what a call is known by is in the log.
func TestLogger(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	m := NewMetrics(prometheus.NewRegistry(), clock)
	_, err := service(t, m, clock, http.StatusForbidden).DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	var lines bytes.Buffer
	logger := Logger(funcr.New(func(prefix, args string) { fmt.Fprintln(&lines, prefix, args) }, funcr.Options{}))
	logger.WithName("launch").WithValues("a", 1).Error(fmt.Errorf("subnets: %w", err), "failed", "b", 2)
	for _, want := range []string{
		`launch`, `"a"=1`, `"b"=2`, `"aws-service-name"="EC2"`, `"aws-operation-name"="DescribeSubnets"`, `"aws-request-id"="req-1"`,
		`"aws-status-code"=403`, `"aws-error-code"="UnauthorizedOperation"`,
	} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("no %s in %s", want, lines.String())
		}
	}
	lines.Reset()
	logger.Error(fmt.Errorf("etcd is away"), "failed")
	if strings.Contains(lines.String(), "aws-") {
		t.Error(lines.String())
	}
}

// TestLogLinesNameTheirCaller: log lines name the place where they were logged.
func TestLogLinesNameTheirCaller(t *testing.T) {
	var lines bytes.Buffer
	logger := Logger(funcr.New(func(prefix, args string) { fmt.Fprintln(&lines, prefix, args) }, funcr.Options{LogCaller: funcr.All}))
	logger.Info("well")
	logger.Error(nil, "failed")
	logger.WithName("launch").WithValues("a", 1).Error(nil, "failed again")
	if n := strings.Count(lines.String(), `"file"="call_test.go"`); n != 3 {
		t.Errorf("%d of 3 lines are from here:\n%s", n, lines.String())
	}
}
