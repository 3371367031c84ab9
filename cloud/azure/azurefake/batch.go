// SPDX-License-Identifier: Apache-2.0

package azurefake

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	aks "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v8"
)

// batchHeader names the machines that one request makes, and what differs between
// them.
const batchHeader = "BatchPutMachine"

// mostInBatch is how many machines one request makes at most.
const mostInBatch = 50

// batchDetail is why one of them is not made.
type batchDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Target  string `json:"target"`
}

// putBatch makes what it can of the machines. Those that it cannot make are named
// in the error, in another form when one of them is AKS' own fault.
func (c *Cloud) putBatch(r *request) (int, map[string]string, any, *problem) {
	if err := c.poolLocked(r); err != nil {
		return 0, nil, nil, err
	}
	var named struct {
		BatchMachines []struct {
			MachineName string
			Zones       []string
			Tags        map[string]string
		}
	}
	if err := json.Unmarshal([]byte(r.Header.Get(batchHeader)), &named); err != nil || len(named.BatchMachines) == 0 || len(named.BatchMachines) > mostInBatch || strings.Contains(r.Header.Get(batchHeader), "null") {
		return 0, nil, nil, refuse(http.StatusBadRequest, "InvalidParameter", "The header %s is not valid.", batchHeader)
	}
	var failed []batchDetail
	server := false
	for _, m := range named.BatchMachines {
		err := c.putOfBatchLocked(r, m.MachineName, m.Zones, m.Tags)
		if err != nil {
			failed = append(failed, batchDetail{err.code, err.message, m.MachineName})
			server = server || err.status >= http.StatusInternalServerError
		}
	}
	switch {
	case len(failed) == 0:
		return http.StatusCreated, c.startLocked(machines, c.config.Creation, nil), c.machines[machineKey(r.pool, r.name)].model, nil
	case server:
		text, err := json.Marshal(map[string]any{"details": failed})
		if err != nil {
			return 0, nil, nil, refuse(http.StatusInternalServerError, "InternalServerError", "%v", err)
		}
		return http.StatusInternalServerError, nil, map[string]any{"code": "BatchMachineInternalServerError", "message": string(text)}, nil
	}
	return http.StatusBadRequest, nil, map[string]any{"error": map[string]any{
		"code": "BatchMachineClientError", "message": "A part of the batch could not be created.", "details": failed,
	}}, nil
}

func (c *Cloud) putOfBatchLocked(r *request, name string, zones []string, tags map[string]string) *problem {
	if _, exists := c.machines[machineKey(r.pool, name)]; exists {
		return refuse(http.StatusBadRequest, "InvalidParameter", "The machine '%s' exists, and a batch updates none.", name)
	}
	var wanted aks.Machine // one for each: they do not share pointers
	if err := json.Unmarshal(r.body, &wanted); err != nil || wanted.Properties == nil {
		return refuse(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid: %v", err)
	}
	wanted.Zones, wanted.Properties.Tags = to.SliceOfPtrs(zones...), map[string]*string{}
	for key, value := range tags {
		wanted.Properties.Tags[key] = &value
	}
	one := *r
	one.name = name
	_, _, _, err := c.createLocked(&one, wanted)
	return err
}
