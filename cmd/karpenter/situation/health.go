// SPDX-License-Identifier: Apache-2.0

package situation

import "time"

// Health is what the leader reports of its own work.
type Health struct {
	// Cloud is the provider: aws or kwok.
	Cloud string `json:"cloud"`
	// Queue is the name of the interruption queue; "" = there is none.
	Queue string `json:"interruptionQueue,omitempty"`
	// SpotPrices is the hour in which spot prices were last read; zero = not yet, or there are none.
	SpotPrices time.Time `json:"spotPrices,omitzero"`
	// Calls are the calls to the cloud that fail.
	Calls []Failing `json:"failingCalls,omitempty"`
	// Watches are the kinds of objects that are not being watched.
	Watches []Failing `json:"failingWatches,omitempty"`
}

// Failing is something that does not work.
type Failing struct {
	What  string    `json:"what"` // action of IAM, or kind of object
	Since time.Time `json:"since"`
	Code  string    `json:"code,omitempty"` // of the cloud's answer; "" = none came
	// Refused reports that a permission is missing.
	Refused bool `json:"refused,omitempty"`
	// Optional reports that the process works without it.
	Optional bool `json:"optional,omitempty"`
}

// Actions whose failures count whatever their cause: without them interruptions or prices are
// not known.
const (
	SpotPricesAction     = "ec2:DescribeSpotPriceHistory"
	OnDemandPricesAction = "pricing:GetProducts"
	QueueAction          = "sqs:ReceiveMessage"
	QueueURLAction       = "sqs:GetQueueUrl"
)

// ReadActions are the actions above.
func ReadActions() []string {
	return []string{SpotPricesAction, OnDemandPricesAction, QueueAction, QueueURLAction}
}

// patience is how long something may fail before it is published, unless a permission is
// missing.
const patience = time.Minute

// settled returns the health without failures that may be gone in a moment.
func (h Health) settled(now time.Time) Health {
	keep := func(all []Failing) []Failing {
		var out []Failing
		for _, f := range all {
			if f.Refused || now.Sub(f.Since) >= patience {
				f.Since = f.Since.UTC().Truncate(time.Second)
				out = append(out, f)
			}
		}
		return out
	}
	h.Calls, h.Watches = keep(h.Calls), keep(h.Watches)
	h.SpotPrices = h.SpotPrices.UTC().Truncate(time.Hour)
	return h
}
