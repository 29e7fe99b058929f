# SPDX-License-Identifier: Apache-2.0
"""A FastAPI hello with the same small document, run by uvicorn: python3 hello.py PORT"""
import sys
import time

import uvicorn
from fastapi import FastAPI

app = FastAPI()
start = time.time()


@app.get("/info")
async def info():
    return {
        "uptime": time.time() - start,
        "idle_time": 0.25,
        "resources": {"cpu_percent": 12.5, "memory_rss": 20480000, "memory_vms": 104857600, "state": "running"},
    }


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
