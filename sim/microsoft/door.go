// SPDX-License-Identifier: Apache-2.0

package microsoft

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	aks "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v8"

	"karpenter/cloud/azure/failure"
	"karpenter/cloud/azure/instancetype"
	"karpenter/model"
	"karpenter/sim"
)

// Verbs of requests that change something.
const (
	Create = "Create"
	Update = "Update" // the tags of a machine
	Delete = "Delete"
)

// Answer is an error that the SDK gets as an answer of Azure.
type Answer struct {
	Status        int
	Code, Message string
	RetryAfter    string
}

func (a *Answer) Error() string { return a.Code + ": " + a.Message }

// door is the way of one process to Azure.
type door struct {
	policy.Transporter
	through sim.Door
	*Subscription
}

// Do implements policy.Transporter.
func (d door) Do(r *http.Request) (answer *http.Response, err error) {
	body, err := read(r)
	if err != nil {
		return nil, err
	}
	verb, name := described(r, body)
	d.calls.Count(verb)
	writes := r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, graph)
	err = d.through(r.Context(), verb, name, r.URL.RequestURI()+"\n"+string(body), writes, func() (err error) {
		answer, err = d.Transporter.Do(r)
		if writes && err == nil {
			d.calls.Changed()
			err = d.refusal(answer, body)
		}
		return err
	})
	if refused := (*Answer)(nil); errors.As(err, &refused) {
		return refused.response(r)
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// read takes the body out of the request, and puts it back.
func read(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

// graph ends the path of Resource Graph, to which questions are posted.
const graph = "/Microsoft.ResourceGraph/resources"

// described is what the request does, and to which machine or what belongs to it.
func described(r *http.Request, body []byte) (verb, name string) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last := parts[len(parts)-1]
	switch {
	case strings.HasSuffix(r.URL.Path, graph):
		return "List " + last, ""
	case r.Method == http.MethodPut && r.Header.Get("If-Match") != "", r.Method == http.MethodPatch:
		return Update, last
	case r.Method == http.MethodDelete:
		return Delete, last
	case r.Method == http.MethodPut:
		return Create, last
	case r.Method == http.MethodPost:
		var wanted aks.AgentPoolDeleteMachinesParameter
		if json.Unmarshal(body, &wanted) == nil && len(wanted.MachineNames) == 1 {
			name = *wanted.MachineNames[0]
		}
		return Delete, name
	case len(parts) > 4 && parts[len(parts)-4] == "agentPools", // NAME/machines/NAME
		len(parts) > 1 && (parts[len(parts)-2] == "virtualMachines" || parts[len(parts)-2] == "networkInterfaces"):
		return "Get", last
	}
	return "List " + last, ""
}

// refusal notes what Azure says it lacks when it rejects a machine.
func (s *Subscription) refusal(answer *http.Response, asked []byte) error {
	if answer.StatusCode < http.StatusBadRequest {
		return nil
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(bytes.NewReader(text))
	var said struct {
		Error struct{ Code, Message string }
	}
	var wanted struct { // of an AKS machine, or of a virtual machine
		Zones      []string
		Properties struct {
			Hardware, HardwareProfile struct{ VMSize string }
			Priority                  string
		}
	}
	if err != nil || json.Unmarshal(text, &said) != nil || json.Unmarshal(asked, &wanted) != nil {
		return err
	}
	size := cmp.Or(wanted.Properties.Hardware.VMSize, wanted.Properties.HardwareProfile.VMSize)
	if size == "" {
		return nil
	}
	zone, capacityType := "", model.OnDemand
	if len(wanted.Zones) > 0 {
		zone = wanted.Zones[0]
	}
	if wanted.Properties.Priority == "Spot" {
		capacityType = model.Spot
	}
	attempt := s.attempt(size, zone, capacityType)
	s.lacks(attempt, attempt.Request(failure.Error{Code: said.Error.Code, Text: said.Error.Message}))
	return nil
}

// attempt describes the launch of a size in a zone by its number.
func (s *Subscription) attempt(size, zone, capacityType string) failure.Attempt {
	out := failure.Attempt{Size: size, Zone: instancetype.ZoneLabel(Region, zone), CapacityType: capacityType}
	if facts := s.sells.Facts(size); facts != nil {
		for _, number := range facts.Zones {
			out.Zones = append(out.Zones, instancetype.ZoneLabel(Region, number))
		}
	}
	return out
}

// lacks notes what a verdict says.
func (s *Subscription) lacks(attempt failure.Attempt, v failure.Verdict) {
	now := time.Now()
	facts := s.sells.Facts(attempt.Size)
	if facts == nil {
		return
	}
	for _, place := range v.Short {
		s.shortages.Size(&facts.SKU, place.Zone, place.CapacityType, now.Add(v.Lasts), now)
	}
}

// response is the answer as HTTP has it.
func (a *Answer) response(to *http.Request) (*http.Response, error) {
	body, err := json.Marshal(map[string]any{"error": map[string]string{"code": a.Code, "message": a.Message}})
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if a.RetryAfter != "" {
		header.Set("Retry-After", a.RetryAfter)
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status)), StatusCode: a.Status, Header: header,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: to, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}
