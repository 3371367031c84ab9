// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"karpenter/cloud"
)

// fleetOf returns n IDs of EC2's shape.
func fleetOf(n int) []string {
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprintf("i-%017x", i))
	}
	return ids
}

// TestBatchErrorsAreSplitByInstance plays EC2's errors to calls for 500 instances, and counts the calls
// that are made until each instance has its answer.
func TestBatchErrorsAreSplitByInstance(t *testing.T) {
	ids := fleetOf(500)
	unknown, malformed := []string{ids[3], ids[77], ids[499]}, ids[11]
	rejects := func(bad []string, code, format string) func([]string) error {
		return func(asked []string) error {
			var found []string
			for _, id := range bad {
				if slices.Contains(asked, id) {
					found = append(found, id)
				}
			}
			if len(found) == 0 {
				return nil
			}
			message := format
			if strings.Contains(format, "%") {
				message = fmt.Sprintf(format, strings.Join(found, ", "))
			}
			return &smithy.GenericAPIError{Code: code, Message: message}
		}
	}
	always := func(err error) func([]string) error { return func([]string) error { return err } }
	all := func(error) bool { return true }
	for _, c := range []struct {
		name   string
		answer func([]string) error
		single func(error) bool
		calls  int
		failed []string
	}{
		{"none", always(nil), aboutIDs, 1, nil},
		{"some are unknown", rejects(unknown, "InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist"), aboutIDs, 2, unknown},
		{"one is malformed", rejects([]string{malformed}, "InvalidInstanceID.Malformed", `Invalid id: "%s"`), aboutIDs, 2, []string{malformed}},
		{"some are unknown, and not named", rejects(unknown, "InvalidInstanceID.NotFound", "no such instances"), aboutIDs, 501, unknown},
		{"one is protected", rejects(unknown[:1], "OperationNotPermitted", "no"), all, 501, unknown[:1]},
		{"EC2 throttles", always(apiError("RequestLimitExceeded")), all, 1, ids},
		{"EC2 throttles in other words", always(apiError("ThrottlingException")), all, 1, ids},
		{"EC2 fails", always(&smithy.GenericAPIError{Code: "InternalError", Fault: smithy.FaultServer}), all, 1, ids},
		{"no answer", always(errors.New("connection reset by peer")), all, 1, ids},
		{"no permission", always(apiError("UnauthorizedOperation")), aboutIDs, 1, ids},
	} {
		calls := make(chan int, 2*len(ids))
		failed := apart(ids, func(ids []string) error { calls <- len(ids); return c.answer(ids) }, c.single)
		if got := slices.Sorted(maps.Keys(failed)); len(calls) != c.calls || !slices.Equal(got, c.failed) {
			t.Errorf("%s: %d calls, want %d; %d failed, want %d", c.name, len(calls), c.calls, len(got), len(c.failed))
		}
	}
}

// TestApartThrottledOnTheWay: EC2 starts to throttle while instances are asked
// for one by one.
func TestApartThrottledOnTheWay(t *testing.T) {
	ids, calls := fleetOf(500), make(chan int, 1000)
	failed := apart(ids, func(ids []string) error {
		calls <- 1
		if len(calls) > 20 {
			return apiError("RequestLimitExceeded")
		}
		return apiError("OperationNotPermitted")
	}, func(error) bool { return true })
	if len(failed) != len(ids) || len(calls) > 20+10 {
		t.Errorf("%d of %d failed after %d calls", len(failed), len(ids), len(calls))
	}
}

// TestThrottledTogether covers callers: of many that ask at once while EC2
// throttles, none gets the error that its instance is gone, and EC2 is asked
// once.
func TestThrottledTogether(t *testing.T) {
	for operation, act := range map[string]func(*testing.T, *stage, string) error{
		"DescribeInstances":  func(t *testing.T, s *stage, id string) error { _, err := s.Read(t.Context(), id); return err },
		"TerminateInstances": func(t *testing.T, s *stage, id string) error { return s.End(t.Context(), id) },
	} {
		inBubble(t, func(t *testing.T, s *stage) {
			ids := launched(s, 100)
			s.ec2.refuse[operation] = apiError("RequestLimitExceeded")
			before := s.ec2.count(operation)
			each(len(ids), len(ids), func(i int) {
				if err := act(t, s, ids[i]); err == nil || cloud.IsNotFound(err) {
					t.Errorf("%s: %v", ids[i], err)
				}
			})
			check(t, operation, s.ec2.count(operation)-before, 1)
		})
	}
}
