# An image that trains; by default micro_softmax, on CPUs:
#     docker build -t zoo . && docker run zoo
#     docker build -t zoo:tpu --build-arg JAX='jax[tpu]' .      # or jax[cuda12]
FROM python:3.12-slim
ARG JAX=jax
WORKDIR /zoo
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt "$JAX"
COPY . .
ENTRYPOINT ["python", "train.py"]
CMD ["--config", "micro_softmax", "runs/micro_softmax"]
