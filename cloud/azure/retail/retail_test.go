// SPDX-License-Identifier: Apache-2.0

package retail_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"karpenter/cloud/azure/retail"
	"karpenter/cloud/azurevm"
	"karpenter/model"
)

type row map[string]any

func linux(size string, price float64, more row) row {
	out := row{
		"armSkuName": size, "skuName": strings.TrimPrefix(size, "Standard_"), "productName": "Virtual Machines Series", "meterName": size,
		"retailPrice": price, "unitOfMeasure": "1 Hour", "type": "Consumption", "isPrimaryMeterRegion": true, "effectiveStartDate": "2026-01-01T00:00:00Z",
	}
	maps.Copy(out, more)
	return out
}

// serve serves the rows in pages of two.
func serve(t *testing.T, rows []row) (endpoint string, filters *[]string) {
	t.Helper()
	filters = &[]string{}
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*filters = append(*filters, r.URL.Query().Get("$filter"))
		var from int
		if skip := r.URL.Query().Get("skip"); skip != "" {
			if _, err := fmt.Sscan(skip, &from); err != nil {
				t.Error(err)
			}
		}
		end := min(from+2, len(rows))
		page := map[string]any{"Items": rows[from:end], "NextPageLink": ""}
		if end < len(rows) {
			page["NextPageLink"] = fmt.Sprintf("%s?skip=%d", server.URL, end)
		}
		if err := json.NewEncoder(w).Encode(page); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, filters
}

// TestFetch covers the reading of spec 71/40: which rows count, on all pages, in
// any order.
func TestFetch(t *testing.T) {
	rows := []row{
		linux("Standard_D4s_v3", 0.192, nil),
		linux("Standard_D4s_v3", 0.376, row{"productName": "Virtual Machines Series Windows"}),
		linux("Standard_D4s_v3", 0.0384, row{"meterName": "D4s v3 Low Priority"}),
		linux("Standard_D4s_v3", 0.05, row{"skuName": "D4s v3 Spot"}),
		linux("Standard_D4s_v3", 0.01, row{"skuName": "D4s v3 Spot", "productName": "Virtual Machines Series Windows"}),
		linux("Standard_D4s_v3", 1.5, row{"unitOfMeasure": "1 Month"}),
		linux("Standard_D4s_v3", 0.1, row{"type": "DevTestConsumption"}),
		linux("Standard_D4s_v3", 0.2, row{"effectiveStartDate": "2025-01-01T00:00:00Z"}),
		linux("Standard_D4s_v3", 0.3, row{"isPrimaryMeterRegion": false, "effectiveStartDate": "2026-06-01T00:00:00Z"}),
		linux("Standard_E8s_v3", 0.504, nil),
		linux("", 9, nil),
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		endpoint, filters := serve(t, rows)
		got, err := retail.Fetch(t.Context(), http.DefaultClient, endpoint, "eastus")
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]model.Price{"Standard_D4s_v3": azurevm.Price(0.192), "Standard_E8s_v3": azurevm.Price(0.504)}; !maps.Equal(got.OnDemand, want) {
			t.Errorf("on demand %v", got.OnDemand)
		}
		if want := map[string]model.Price{"Standard_D4s_v3": azurevm.Price(0.05)}; !maps.Equal(got.Spot, want) {
			t.Errorf("spot %v", got.Spot)
		}
		const want = "priceType eq 'Consumption' and currencyCode eq 'USD' and serviceFamily eq 'Compute' and serviceName eq 'Virtual Machines' and armRegionName eq 'eastus'"
		if (*filters)[0] != want || len(*filters) != 6 {
			t.Errorf("%d pages, filter %q", len(*filters), (*filters)[0])
		}
	}
}

// TestFetchFails: an answer that is no list of prices is an error.
func TestFetchFails(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"status":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
	} {
		server := httptest.NewServer(handler)
		if got, err := retail.Fetch(t.Context(), http.DefaultClient, server.URL, "eastus"); err == nil {
			t.Errorf("%s: %v", name, got)
		}
		server.Close()
	}
}
