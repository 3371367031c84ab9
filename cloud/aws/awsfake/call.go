// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/aws/smithy-go"
)

// operation is an API call: which service has it and which permissions it takes.
type operation struct {
	service  string // as the SDK names it
	actions  []string
	mutating bool
}

// operations are those of package client and what machines ask, by name.
var operations = map[string]operation{
	"DescribeInstanceTypes":         {"EC2", []string{"ec2:DescribeInstanceTypes"}, false},
	"DescribeInstanceTypeOfferings": {"EC2", []string{"ec2:DescribeInstanceTypeOfferings"}, false},
	"DescribeSpotPriceHistory":      {"EC2", []string{"ec2:DescribeSpotPriceHistory"}, false},
	"DescribeSubnets":               {"EC2", []string{"ec2:DescribeSubnets"}, false},
	"DescribeSecurityGroups":        {"EC2", []string{"ec2:DescribeSecurityGroups"}, false},
	"DescribeImages":                {"EC2", []string{"ec2:DescribeImages"}, false},
	"DescribeCapacityReservations":  {"EC2", []string{"ec2:DescribeCapacityReservations"}, false},
	"DescribePlacementGroups":       {"EC2", []string{"ec2:DescribePlacementGroups"}, false},
	"DescribeLaunchTemplates":       {"EC2", []string{"ec2:DescribeLaunchTemplates"}, false},
	"CreateLaunchTemplate":          {"EC2", []string{"ec2:CreateLaunchTemplate", "ec2:CreateTags"}, true},
	"DeleteLaunchTemplate":          {"EC2", []string{"ec2:DeleteLaunchTemplate"}, true},
	"CreateFleet":                   {"EC2", []string{"ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateTags", "iam:PassRole"}, true},
	"RunInstances":                  {"EC2", []string{"ec2:RunInstances", "ec2:CreateTags", "iam:PassRole"}, true},
	"CreateTags":                    {"EC2", []string{"ec2:CreateTags"}, true},
	"TerminateInstances":            {"EC2", []string{"ec2:TerminateInstances"}, true},
	"RebootInstances":               {"EC2", []string{"ec2:RebootInstances"}, true},
	"DescribeInstances":             {"EC2", []string{"ec2:DescribeInstances"}, false},
	"DescribeInstanceStatus":        {"EC2", []string{"ec2:DescribeInstanceStatus"}, false},
	"DescribeInstanceAttribute":     {"EC2", []string{"ec2:DescribeInstanceAttribute"}, false},
	"DescribeVolumes":               {"EC2", []string{"ec2:DescribeVolumes"}, false},
	"DescribeCluster":               {"EKS", []string{"eks:DescribeCluster"}, false},
	"GetInstanceProfile":            {"IAM", []string{"iam:GetInstanceProfile"}, false},
	"ListInstanceProfiles":          {"IAM", []string{"iam:ListInstanceProfiles"}, false},
	"CreateInstanceProfile":         {"IAM", []string{"iam:CreateInstanceProfile", "iam:TagInstanceProfile"}, true},
	"DeleteInstanceProfile":         {"IAM", []string{"iam:DeleteInstanceProfile"}, true},
	"AddRoleToInstanceProfile":      {"IAM", []string{"iam:AddRoleToInstanceProfile", "iam:PassRole"}, true},
	"RemoveRoleFromInstanceProfile": {"IAM", []string{"iam:RemoveRoleFromInstanceProfile"}, true},
	"GetProducts":                   {"Pricing", []string{"pricing:GetProducts"}, false},
	"GetQueueUrl":                   {"SQS", []string{"sqs:GetQueueUrl"}, false},
	"ReceiveMessage":                {"SQS", []string{"sqs:ReceiveMessage"}, false},
	"DeleteMessage":                 {"SQS", []string{"sqs:DeleteMessage"}, true},
	"GetParameter":                  {"SSM", []string{"ssm:GetParameter"}, false},
	"GetManagedResource":            {"ARC Zonal Shift", []string{"arc-zonal-shift:GetManagedResource"}, false},
}

// Failure is what a call comes to instead of its answer.
type Failure struct {
	Code, Message string
	// Server blames the service rather than the caller.
	Server bool
	// Lost performs the call and loses the answer.
	Lost bool
	// Times is how many calls fail; 0 is all until removed.
	Times int
	// When picks the calls that fail by their input, a pointer to the SDK's
	// struct. Nil is all. It must not call the account.
	When func(input any) bool
}

// Limit is a token bucket: Burst calls at once, refilled with PerSecond tokens.
type Limit struct{ Burst, PerSecond float64 }

// RealLimits are the request rates EC2 documents for the calls of Karpenter.
func RealLimits() map[string]Limit {
	limits := map[string]Limit{}
	for name, op := range operations {
		switch {
		case op.service != "EC2":
		case op.mutating:
			limits[name] = Limit{50, 5}
		default:
			limits[name] = Limit{100, 20}
		}
	}
	limits["RunInstances"] = Limit{5, 2}
	limits["TerminateInstances"] = Limit{100, 5}
	limits["RebootInstances"] = Limit{100, 5}
	limits["CreateTags"] = Limit{100, 10}
	return limits
}

// guard is what stands between a call and its answer.
type guard struct {
	calls    map[string]int
	denied   map[string]string // action → why
	failures map[string][]*failure
	limits   map[string]Limit
	buckets  map[string]*bucket
}

type failure struct {
	Failure
	left int
}

type bucket struct {
	tokens float64
	filled time.Time
}

func (g *guard) start(limits map[string]Limit) {
	g.calls, g.denied, g.failures = map[string]int{}, map[string]string{}, map[string][]*failure{}
	g.limits, g.buckets = maps.Clone(limits), map[string]*bucket{}
}

type unguarded struct{}

// Unguarded returns a context in which calls are not counted, limited, denied or
// made to fail: those with which machines are simulated, which AWS would not have.
func Unguarded(ctx context.Context) context.Context {
	return context.WithValue(ctx, unguarded{}, true)
}

// Calls returns how often each operation was called, rejected calls included.
func (a *AWS) Calls() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.guard.calls)
}

// ResetCalls starts counting again.
func (a *AWS) ResetCalls() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.guard.calls)
}

// Why an action is denied, as AWS words it.
const (
	NoPolicy             = "because no identity-based policy allows the %s action"
	PermissionsBoundary  = "with an explicit deny in a permissions boundary"
	ServiceControlPolicy = "with an explicit deny in a service control policy"
)

// Deny revokes the permission for an action such as "ec2:CreateFleet". Calls
// need more than the action of their own name: CreateFleet runs instances, tags
// them and passes their role. Why is one of the constants above.
func (a *AWS) Deny(action, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if why == NoPolicy {
		why = fmt.Sprintf(why, action)
	}
	defer a.record(a.clock.Now(), a.ids, "Deny", denial{action, why})
	a.guard.denied[action] = why
}

// Allow gives the permission back.
func (a *AWS) Allow(action string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.record(a.clock.Now(), a.ids, "Allow", action)
	delete(a.guard.denied, action)
}

// Throttle limits the rate of an operation; the zero Limit lifts it.
func (a *AWS) Throttle(operation string, limit Limit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.guard.buckets, operation)
	delete(a.guard.limits, operation)
	if limit != (Limit{}) {
		if a.guard.limits == nil {
			a.guard.limits = map[string]Limit{}
		}
		a.guard.limits[operation] = limit
	}
}

// Fail makes calls of the operation fail. The earliest failure that is asked for
// and not used up counts. Mend ends it.
func (a *AWS) Fail(operation string, f Failure) (mend func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	added := &failure{f, f.Times}
	a.guard.failures[operation] = append(a.guard.failures[operation], added)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		added.Times, added.left = 1, 0
	}
}

// answer is the way of every call: do runs with the lock held and the account as
// it is now.
func answer[Out any](ctx context.Context, a *AWS, name string, in any, do func(now time.Time) (*Out, error)) (*Out, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out, err := guarded(ctx, a, name, in, do)
	if err != nil {
		return nil, failed(name, err)
	}
	return out, nil
}

// failed wraps the error of an operation as the SDK does.
func failed(name string, err error) error {
	return &smithy.OperationError{ServiceID: operations[name].service, OperationName: name, Err: err}
}

func guarded[Out any](ctx context.Context, a *AWS, name string, in any, do func(now time.Time) (*Out, error)) (*Out, error) {
	now := a.settle()
	if err := ctx.Err(); err != nil {
		return nil, &smithy.CanceledError{Err: err}
	}
	do = recorded(a, name, in, do)
	if ctx.Value(unguarded{}) != nil {
		defer a.settle()
		return do(now)
	}
	a.guard.calls[name]++
	if err := a.guard.throttle(name, now); err != nil {
		return nil, err
	}
	if err := a.permitted(name, in); err != nil {
		return nil, err
	}
	f := a.guard.failure(name, in)
	if f != nil && !f.Lost {
		return nil, f.err()
	}
	out, err := do(now)
	a.settle()
	if f != nil && err == nil {
		return nil, f.err()
	}
	return out, err
}

func (g *guard) throttle(name string, now time.Time) error {
	limit, ok := g.limits[name]
	if !ok {
		return nil
	}
	b := g.buckets[name]
	if b == nil {
		b = &bucket{limit.Burst, now}
		g.buckets[name] = b
	}
	b.tokens = min(limit.Burst, b.tokens+now.Sub(b.filled).Seconds()*limit.PerSecond)
	b.filled = now
	if b.tokens < 1 {
		if operations[name].service == "EC2" {
			return refuse("RequestLimitExceeded", "Request limit exceeded.")
		}
		return refuse("ThrottlingException", "Rate exceeded")
	}
	b.tokens--
	return nil
}

// failure returns the failure asked for the call, and counts it as used.
func (g *guard) failure(name string, in any) *failure {
	for _, f := range g.failures[name] {
		if f.Times > 0 && f.left == 0 || f.When != nil && !f.When(in) {
			continue
		}
		if f.Times > 0 {
			f.left--
		}
		return f
	}
	return nil
}

func (f *failure) err() error {
	fault := smithy.FaultClient
	if f.Server {
		fault = smithy.FaultServer
	}
	return &smithy.GenericAPIError{Code: f.Code, Message: f.Message, Fault: fault}
}

// refuse is an error that blames the caller.
func refuse(code, format string, args ...any) error {
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...), Fault: smithy.FaultClient}
}

// dryRun is the answer to a call that asked whether it would succeed.
func dryRun(asked *bool) error {
	if asked != nil && *asked {
		return refuse("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	}
	return nil
}
