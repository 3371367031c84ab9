// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"karpenter/cloud/aws/awsfake"
)

// controlPath is the path below which a person or a script makes events happen,
// as in
//
//	curl -X POST "$AWS_ENDPOINT_URL/_awssim/interrupt?instance=i-0123456789abcdef0"
//
// GET tells what there is.
const controlPath = "/_awssim/"

// deed is an event that can happen to the account.
type deed struct {
	name, parameters, meaning string
	do                        func(*awsfake.AWS, url.Values) error
}

func deeds() []deed {
	return []deed{
		{"interrupt", "instance", "a spot instance is warned, and ends in two minutes", func(a *awsfake.AWS, v url.Values) error {
			return a.Interrupt(v.Get("instance"))
		}},
		{"rebalance", "instance", "it is recommended to leave a spot instance", func(a *awsfake.AWS, v url.Values) error {
			return a.Rebalance(v.Get("instance"))
		}},
		{"lose", "instance", "an instance ends without a warning", func(a *awsfake.AWS, v url.Values) error {
			return a.Lose(v.Get("instance"))
		}},
		{"stock", "type zone capacity-type left", "how many more instances of a pool can be launched; an empty name means all, a negative number no limit", func(a *awsfake.AWS, v url.Values) error {
			left, err := strconv.ParseInt(v.Get("left"), 10, 64)
			if err != nil {
				return fmt.Errorf("left: %w", err)
			}
			a.Stock(awsfake.Pool{Type: v.Get("type"), Zone: v.Get("zone"), CapacityType: v.Get("capacity-type")}, left)
			return nil
		}},
		{"spot-price", "type zone dollars", "what an hour of spot costs; an empty zone is all", func(a *awsfake.AWS, v url.Values) error {
			dollars, err := strconv.ParseFloat(v.Get("dollars"), 64)
			if err != nil {
				return fmt.Errorf("dollars: %w", err)
			}
			a.SetSpotPrice(v.Get("type"), v.Get("zone"), dollars)
			return nil
		}},
		{"release-images", "kubernetes bottlerocket", "new machine images, to which the aliases @latest move on", func(a *awsfake.AWS, v url.Values) error {
			return a.ReleaseImages(v.Get("kubernetes"), time.Now(), v.Get("bottlerocket"))
		}},
		{"send", "queue body", "a message is put into a queue of SQS", func(a *awsfake.AWS, v url.Values) error {
			return a.SendMessage(v.Get("queue"), v.Get("body"))
		}},
		{"deny", "action", "deny an action such as ec2:CreateFleet", func(a *awsfake.AWS, v url.Values) error {
			a.Deny(v.Get("action"), awsfake.NoPolicy)
			return nil
		}},
		{"allow", "action", "and given back", func(a *awsfake.AWS, v url.Values) error {
			a.Allow(v.Get("action"))
			return nil
		}},
	}
}

func newControl(a *awsfake.AWS) http.Handler {
	mux := http.NewServeMux()
	help := &strings.Builder{}
	fmt.Fprintf(help, "GET  %scalls   how often each operation was called\n", controlPath)
	fmt.Fprintf(help, "GET  %sprices   lines of type, zone, capacity type and dollars per hour, as of now\n", controlPath)
	for _, d := range deeds() {
		fmt.Fprintf(help, "POST %s%s?%s=   %s\n", controlPath, d.name, strings.ReplaceAll(d.parameters, " ", "=&"), d.meaning)
		mux.HandleFunc("POST "+controlPath+d.name, func(w http.ResponseWriter, r *http.Request) {
			if err := d.try(a, r.URL.Query()); err != nil {
				http.Error(w, fmt.Sprintf("%s: %v", d.name, err), http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		})
	}
	mux.HandleFunc("GET "+controlPath+"{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, help) })
	mux.HandleFunc("GET "+controlPath+"calls", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a.Calls()) // a client that has gone needs no answer
	})
	mux.HandleFunc("GET "+controlPath+"prices", func(w http.ResponseWriter, r *http.Request) {
		if err := writePrices(r.Context(), w, a); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET "+controlPath+"bill", func(w http.ResponseWriter, _ *http.Request) { writeBill(w, a) })
	return mux
}

// writeBill writes for each instance that is not terminated what it costs per hour,
// and what its volumes and its address cost, in dollars.
func writeBill(w io.Writer, a *awsfake.AWS) {
	for _, i := range a.Instances() {
		if i.State.Name == types.InstanceStateNameTerminated {
			continue
		}
		way := awsfake.OnDemand
		if i.InstanceLifecycle == types.InstanceLifecycleTypeSpot {
			way = awsfake.Spot
		}
		dollars, _ := a.Price(awsfake.Pool{Type: string(i.InstanceType), Zone: *i.Placement.AvailabilityZone, CapacityType: way})
		fmt.Fprintf(w, "%s %v %v\n", *i.InstanceId, dollars, i.Besides)
	}
}

func writePrices(ctx context.Context, w io.Writer, a *awsfake.AWS) error {
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(a.Services().EC2, &ec2.DescribeInstanceTypeOfferingsInput{LocationType: types.LocationTypeAvailabilityZone})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, o := range page.InstanceTypeOfferings {
			for _, way := range []string{awsfake.OnDemand, awsfake.Spot} {
				pool := awsfake.Pool{Type: string(o.InstanceType), Zone: *o.Location, CapacityType: way}
				if dollars, ok := a.Price(pool); ok {
					fmt.Fprintf(w, "%s %s %s %v\n", pool.Type, pool.Zone, way, dollars)
				}
			}
		}
	}
	return nil
}

// try does the deed if it has its parameters and no others.
func (d *deed) try(a *awsfake.AWS, values url.Values) error {
	known := strings.Fields(d.parameters)
	for _, name := range known {
		if !values.Has(name) {
			return fmt.Errorf("parameter %s is missing; it takes %s", name, d.parameters)
		}
	}
	if len(values) > len(known) {
		return fmt.Errorf("it takes %s and nothing else", d.parameters)
	}
	return d.do(a, values)
}
