// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"flag"
	"time"
)

// Options are the delays of simulated instances. The zero value is instant; DefaultOptions is realistic enough.
type Options struct {
	NodeReadyDelay time.Duration // from a node's first sight to Ready
	PodStartDelay  time.Duration // from a pod's binding to Running
	PodStopDelay   time.Duration // from a pod's deletion to its end, at most its grace period
	JobDuration    time.Duration // how long a pod runs that is meant to complete
	RenewInterval  time.Duration // how often a node renews its Lease
	// KubeletVersion is what nodes report, such as v1.37.1.
	KubeletVersion string
}

// DefaultOptions returns the delays used unless flags say otherwise.
func DefaultOptions() Options {
	return Options{
		NodeReadyDelay: time.Second,
		PodStartDelay:  500 * time.Millisecond,
		PodStopDelay:   time.Second,
		JobDuration:    10 * time.Second,
		RenewInterval:  10 * time.Second,
		KubeletVersion: "v0.0.0",
	}
}

// AddFlags defines the flags of these options on flags, their present values as defaults.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.DurationVar(&o.NodeReadyDelay, "node-ready-delay", o.NodeReadyDelay, "time from a simulated node's creation to Ready")
	flags.DurationVar(&o.PodStartDelay, "pod-start-delay", o.PodStartDelay, "time from a pod's binding to Running")
	flags.DurationVar(&o.PodStopDelay, "pod-stop-delay", o.PodStopDelay, "time from a pod's deletion to its end; never more than its grace period")
	flags.DurationVar(&o.JobDuration, "job-duration", o.JobDuration, "how long a pod with restartPolicy Never or OnFailure runs until it Succeeded")
	flags.DurationVar(&o.RenewInterval, "renew-interval", o.RenewInterval, "how often a simulated node renews its Lease")
}

// Arguments returns the command line that AddFlags would read these options from.
func (o *Options) Arguments() []string {
	return []string{
		"--node-ready-delay=" + o.NodeReadyDelay.String(),
		"--pod-start-delay=" + o.PodStartDelay.String(),
		"--pod-stop-delay=" + o.PodStopDelay.String(),
		"--job-duration=" + o.JobDuration.String(),
		"--renew-interval=" + o.RenewInterval.String(),
	}
}

// Validate returns an error for invalid values.
func (o *Options) Validate() error {
	if o.NodeReadyDelay < 0 || o.PodStartDelay < 0 || o.PodStopDelay < 0 || o.JobDuration < 0 {
		return errors.New("a delay is negative; 0 means at once")
	}
	if o.RenewInterval <= 0 {
		return errors.New("the interval between renewals of a Lease must be positive")
	}
	return nil
}
