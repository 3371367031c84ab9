// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/control/controltest"
	"karpenter/control/drift"
	"karpenter/model"
)

func TestDrift(t *testing.T) {
	for _, file := range []string{"consolidatable", "pool", "requirements", "types", "provider"} {
		t.Run(file, func(t *testing.T) { controltest.Run(t, "testdata/"+file, setup) })
	}
}

func TestRegister(t *testing.T) {
	c := controltest.New(t)
	setup(c)
	c.Register(t)
}

// setup adds the reconciler, and these commands:
//
//	hash POOL           write the pool's hash on it
//	stamp CLAIM POOL    and on a claim
//	types T=ZONE/CAPACITYTYPE,… …
//	                    what the cloud has; T= has no offerings; RID after a
//	                    second slash makes an offering reserved
//	many N              adds types m1 to mN to them
//	drifted REASON      what the provider says of each instance
//	machine-gone        IsDrifted does not find the instance, once
//	broken METHOD       the next call fails
//	restart             forget what the process knows
func setup(c *controltest.Cluster) {
	labels := v1.DefaultLabels()
	labels.WellKnown.Insert("x.io/reservation")
	restart := func([]string) error {
		c.Reconcilers[""] = &drift.Reconciler{Client: c.Client, Provider: c.Cloud, Clock: c.Clock, Labels: labels}
		return nil
	}
	var types []*cloud.InstanceType
	for name, command := range map[string]func([]string) error{
		"restart": restart,
		"hash":    func(words []string) error { return hash(c, &v1.NodePool{}, words[0], words[0]) },
		"stamp":   func(words []string) error { return hash(c, &v1.NodeClaim{}, words[0], words[1]) },
		"types": func(words []string) error {
			types = nil
			for _, w := range words {
				types = append(types, instanceType(w))
			}
			c.Cloud.SetTypes(types...)
			return nil
		},
		"many": func(words []string) error {
			var n int
			if _, err := fmt.Sscan(words[0], &n); err != nil {
				return err
			}
			for i := range n {
				types = append(types, instanceType(fmt.Sprintf("m%d=z1/spot", i+1)))
			}
			c.Cloud.SetTypes(types...)
			return nil
		},
		"drifted": func(words []string) error {
			c.Cloud.SetDrift(strings.Join(words, ""))
			return nil
		},
		"machine-gone": func([]string) error {
			c.Cloud.FailNext(cloudtest.IsDrifted, fmt.Errorf("ask: %w", &cloud.NotFoundError{Err: errors.New("gone")}))
			return nil
		},
		"broken": func(words []string) error {
			c.Cloud.FailNext(cloudtest.Method(words[0]), errors.New("the cloud is away"))
			return nil
		},
	} {
		c.Commands[name] = command
	}
	_ = restart(nil)
}

// hash writes the hash of the pool on the object.
func hash(c *controltest.Cluster, object client.Object, name, of string) error {
	pool := &v1.NodePool{}
	if err := c.Client.Get(context.Background(), client.ObjectKey{Name: of}, pool); err != nil {
		return err
	}
	if err := c.Client.Get(context.Background(), client.ObjectKey{Name: name}, object); err != nil {
		return err
	}
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1.NodePoolHashAnnotationKey] = pool.Hash()
	annotations[v1.NodePoolHashVersionAnnotationKey] = v1.NodePoolHashVersion
	object.SetAnnotations(annotations)
	return c.Client.Update(context.Background(), object)
}

// instanceType reads NAME=ZONE/CAPACITYTYPE/RESERVATION,….
func instanceType(text string) *cloud.InstanceType {
	name, list, _ := strings.Cut(text, "=")
	var offerings []cloud.Offering
	for _, one := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		zone, capacityType, _ := strings.Cut(one, "/")
		capacityType, reservation, _ := strings.Cut(capacityType, "/")
		o := cloudtest.Offering(zone, capacityType, 1)
		o.Available = !strings.HasSuffix(name, "-sold-out")
		if reservation != "" {
			o.ReservationID = reservation
			o.Requirements = o.Requirements.And(model.NewRequirement("x.io/reservation", model.In, reservation))
		}
		offerings = append(offerings, o)
	}
	return cloudtest.Type(name, "2", "4Gi", offerings...)
}
