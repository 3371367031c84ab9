// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	aks "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v8"

	"karpenter/cloud/batch"
)

// Batching is when requests for machines that differ in nothing but their zones and
// tags become one: nothing more has come for Idle, the first has waited for Most, or
// there are Items of them.
type Batching struct {
	Idle, Most time.Duration
	Items      int
	Metrics    *batch.Metrics
}

// The header by which AKS makes several machines of one request, and the codes with
// which it says that some of them could not be made: by a fault of the request, or
// of AKS.
const (
	batchHeader      = "BatchPutMachine"
	batchClientError = "BatchMachineClientError"
	batchServerError = "BatchMachineInternalServerError"
)

// batchTimeout is how long AKS may take to answer a batch.
const batchTimeout = 2 * time.Minute

// order is a machine that is to be made.
type order struct {
	name string
	body aks.Machine
}

// key is the same for orders that can share a request.
func (o order) key() string {
	shared := o.body
	shared.Zones = nil
	if shared.Properties != nil {
		properties := *shared.Properties
		properties.Tags = nil
		shared.Properties = &properties
	}
	text, err := json.Marshal(shared)
	if err != nil {
		return o.name // it shares with none; the request will say what is wrong
	}
	sum := sha256.Sum256(text)
	return string(sum[:])
}

// newBatches returns what joins orders.
func (m *Machines) newBatches(c *Batching) *batch.Batcher[order, struct{}] {
	return batch.New(batch.Config[order, struct{}]{
		Name: "machines", Idle: c.Idle, Most: c.Most, Items: c.Items, Metrics: c.Metrics, Key: order.key, Call: m.putAll,
	})
}

// batchEntry is what differs between the machines of a batch.
type batchEntry struct {
	MachineName string            `json:"machineName"`
	Zones       []string          `json:"zones"`
	Tags        map[string]string `json:"tags"`
}

// putAll makes the machines with one request.
func (m *Machines) putAll(ctx context.Context, orders []order) []batch.Answer[struct{}] {
	answers := make([]batch.Answer[struct{}], len(orders))
	entries := make([]batchEntry, len(orders))
	for i, o := range orders {
		entries[i] = batchEntry{o.name, []string{}, map[string]string{}}
		for _, zone := range o.body.Zones {
			entries[i].Zones = append(entries[i].Zones, *zone)
		}
		for key, text := range o.body.Properties.Tags {
			entries[i].Tags[key] = value(text)
		}
	}
	header, err := json.Marshal(map[string]any{"batchMachines": entries})
	if err == nil {
		headers := spotSystemNodes()
		headers.Set(batchHeader, string(header))
		ctx = policy.WithHTTPHeader(ctx, headers)
		// What has been made would be refused when the request is repeated.
		ctx = policy.WithRetryOptions(ctx, policy.RetryOptions{TryTimeout: batchTimeout, StatusCodes: []int{http.StatusTooManyRequests, http.StatusServiceUnavailable}})
		_, err = m.config.Machines.BeginCreateOrUpdate(ctx, m.config.ResourceGroup, m.config.Cluster, m.config.Pool, orders[0].name, orders[0].body, nil)
	}
	failed, all := batchFailures(err, orders)
	for i, o := range orders {
		switch {
		case all != nil:
			answers[i].Err = all
		case failed[o.name] != nil:
			answers[i].Err = failed[o.name]
		}
	}
	return answers
}

// BatchError is why AKS has not made one machine of a batch.
type BatchError struct {
	Code, Message string
}

func (e *BatchError) Error() string { return e.Code + ": " + e.Message }

// batchDetails is what AKS says about the machines of a batch.
type batchDetails struct {
	Code    string
	Message string
	Details []struct{ Code, Message, Target string }
}

// batchFailures returns why machines of a batch have not been made, by name, or why
// none may be taken to be: the answer is about the request as a whole, or cannot be
// understood.
func batchFailures(err error, orders []order) (failed map[string]error, all error) {
	var answer *azcore.ResponseError
	if err == nil || !errors.As(err, &answer) || answer.RawResponse == nil {
		return nil, err
	}
	text, unread := runtime.Payload(answer.RawResponse)
	if unread != nil {
		return nil, err
	}
	var said struct {
		batchDetails
		Error *batchDetails
	}
	if json.Unmarshal(text, &said) != nil {
		return nil, err
	}
	of := &said.batchDetails
	if said.Error != nil {
		of = said.Error
	}
	if of.Code == batchServerError { // the details are text in the message
		if json.Unmarshal([]byte(of.Message), of) != nil {
			return nil, err
		}
	} else if of.Code != batchClientError {
		return nil, err
	}
	known := map[string]bool{}
	for _, o := range orders {
		known[o.name] = true
	}
	failed = map[string]error{}
	for _, d := range of.Details {
		if !known[d.Target] {
			return nil, fmt.Errorf("AKS names a machine %q that was not asked for: %w", d.Target, err)
		}
		failed[d.Target] = &BatchError{d.Code, d.Message}
	}
	if len(failed) == 0 {
		return nil, err
	}
	return failed, nil
}
